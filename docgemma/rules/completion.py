"""When a turn is done: task patterns and safety valves. The model is never asked whether it is enough (v3 spec, 11)."""

import json
import re
from collections.abc import Mapping
from typing import Any

from docgemma.rules import known
from docgemma.rules.again import asked_again
from docgemma.rules.asked import anonymous, never_orders, reads_record, writes_asked, writes_possible
from docgemma.rules.limits import MAX_RETRIES, MAX_STEPS, MAX_TOTAL_RETRIES
from docgemma.rules.request import request
from docgemma.schemas import TOOL_ARG_SCHEMAS
from docgemma.state import AgentState, ExtractedEntities, ToolResult

__all__ = [
    "MAX_RETRIES", "MAX_STEPS", "MAX_TOTAL_RETRIES", "TASK_PATTERNS", "is_duplicate", "is_repeat", "missing_tools",
    "none_is_right", "required_tools", "task_complete",
]  # fmt: skip

# Keywords are whole words, plurals included; "a|b" in `keywords_all` means either. Order and writing of medication,
# allergy and note, and which words mean a record, need more than keywords: `rules.asked`.
TASK_PATTERNS: dict[str, dict[str, Any]] = {
    "patient_lookup_and_review": {
        "keywords_all": ["patient", "chart|record|summary"],
        "requires": ["search_patient", "get_patient_chart"],
    },
    "drug_safety": {
        "keywords": ["safety", "warning", "boxed warning", "black box", "FDA", "contraindication", "contraindicated"],
        "keywords_with_drug": [
            "safe", "side effect", "adverse effect", "adverse event", "precaution", "toxicity", "label", "boxed",
        ],
        "requires": ["check_drug_safety"],
    },
    "drug_interaction": {
        "keywords": ["interaction", "interact", "interacts", "combining", "together with"],
        "keywords_with_drug": ["check it against", "check that against", "check this against"],
        "keywords_with_two_drugs": ["combine", "combined", "together", "co-administer", "mix", "mixing"],
        "requires": ["check_drug_interactions"],
    },
    "literature_search": {
        "keywords": [
            "studies", "study", "research", "evidence", "literature", "PubMed", "systematic review", "meta-analysis",
            "meta-analyses", "RCT", "published", "publication", "article", "paper", "references", "citations",
        ],
        "requires": ["search_medical_literature"],
    },
    "clinical_trial": {
        "keywords": ["trial", "recruiting", "experimental", "investigational"],
        "requires": ["find_clinical_trials"],
    },
    "prescribe": {"keywords": ["prescribe", "start", "order"], "requires": ["prescribe_medication"]},
    "allergy": {"keywords_all": ["add|document|record|note|log", "allergy|reaction"], "requires": ["add_allergy"]},
    "note": {"keywords_all": ["write|save|document|add", "note"], "requires": ["save_clinical_note"]},
}  # fmt: skip

KNOWLEDGE = ("drug_safety", "drug_interaction", "literature_search", "clinical_trial")

# record lookup, record reading, knowledge, writes
ORDER = (
    "search_patient", "get_patient_chart", "check_drug_safety", "check_drug_interactions",
    "search_medical_literature", "find_clinical_trials", "analyze_medical_image",
    "prescribe_medication", "add_allergy", "save_clinical_note",
)  # fmt: skip
NEEDS_PATIENT = frozenset(name for name, args in TOOL_ARG_SCHEMAS.items() if "patient_id" in args.model_fields)

MAX_REFUSED = 2  # selections in a turn that chose nothing although something was missing

# keywords in a sense that is none of ours
OTHER_SENSE = {
    "study": r"(?:imaging|lab(?:oratory)?|sleep|nerve conduction|coagulation|iron|blood|contrast|case)\s+stud(?:y|ies)",
    "trial": r"(?:randomi[sz]ed|controlled|published|landmark|pivotal)\s+(?:\w+\s+){0,2}trials?|"
    r"trial of (?:therapy|void\w*)",
    "warning": r"warning signs?",
    "evidence": r"evidence of|no evidence",
}
_OTHER = re.compile("|".join(rf"\b(?:{pattern})\b" for pattern in OTHER_SENSE.values()), re.IGNORECASE)
# "I don't want trials, I want publications"
_SUBJECTS = r"(?:trials?|stud(?:y|ies)|papers?|literature|research|evidence|warnings?|interactions?|safety)"
UNWANTED = re.compile(
    r"\b(?:(?:do(?:es)?n['’]t|dont|do not|not)\s+(?:want|need|looking\s+for|look\s+up|look\s+for|search|check|find|"
    r"show|interested\s+in)|skip|instead\s+of|rather\s+than|no\s+need\s+(?:for|of|to))\s+[^,;.?!]{0,60}?"
    rf"{_SUBJECTS}\b|^not\s+(?:the\s+|any\s+|recruiting\s+)?{_SUBJECTS}\b",
    re.IGNORECASE,
)
# studies that somebody can join are trials
TRIAL_STUDIES = re.compile(
    r"\b(?:recruiting|enrol(?:l?ing|l)?|open|ongoing|eligible|terminated|suspended|withdrawn)\s+"
    r"(?:\w+\s+){0,3}?stud(?:y|ies)\b|"
    r"\bstud(?:y|ies)\b(?:(?!trial|\band\b)[^.?!]){0,60}?\b(?:enrol\w*|recruit\w*|join|eligible|participate|"
    r"(?:looking|searching)\s+for\s+(?:\w+\s+)?(?:patients|participants|volunteers|people))\b|"
    r"\b(?:join|enter|get\s+in(?:to)?|take\s+part\s+in|participate\s+in|enrol\w*\s+in|qualify\s+for|running)\s+"
    r"(?:(?!paper|literature|pubmed)\w+\s+){0,3}?stud(?:y|ies)\b|"
    r"\b(?:clinical\s+)?stud(?:y|ies)\s+(?:on|at|in)\s+clinicaltrials\.gov",
    re.IGNORECASE,
)
# "add an allergy …, and after that show me her chart"
READ_LAST = re.compile(
    r"\b(?:then|after\s+that|afterwards|having\s+done\s+(?:that|so)|once\s+(?:that['’]s\s+|that\s+is\s+)?done|when\s+done)\b"
    r"[^.;]{0,20}?\b(?:show|open|pull|bring|get|see|give\s+me)\b[^.;]{0,40}?\b(?:charts?|records?|file|everything|summary)\b",
    re.IGNORECASE,
)
# "literature on lithium toxicity" asks for no label
LITERATURE_ON = re.compile(
    r"\b(?:literature|papers?|evidence|stud(?:y|ies)|articles?|pubmed|research)\s+(?:on|about|for|of|regarding)\s+[^.,;?!]*",
    re.IGNORECASE,
)
CHECK_AGAINST = re.compile(r"\b(?:run|check|screen)\s+(?:[\w-]+\s+){1,3}?against\b", re.IGNORECASE)
PUBLISHED_TRIAL = re.compile(
    r"\b(?:randomi[sz]ed|controlled|published|landmark|pivotal)\s+(?:\w+\s+){0,2}trials?\b", re.I
)


def required_tools(question: str, entities: ExtractedEntities, has_patient: bool) -> list[str]:
    """The tools that a question needs: the union of all matching patterns, in the order in which they can run.

    Args:
        question: as asked.
        entities: what was extracted from it.
        has_patient: whether an active patient is meant where nobody else is named.
    """
    question = request(question)
    needed = _knowledge(question, entities)
    needed.update(writes_asked(question, entities))
    if reads_record(question, entities, has_patient):
        needed.add("get_patient_chart")
    if not needed and entities["patient_ids"] and never_orders(question):
        needed.add("get_patient_chart")  # "has anyone started abc-123 on apixaban?"
    known_patient = bool(entities["patient_ids"]) or has_patient
    if not known_patient and (entities["patient_names"] or _searches_nameless(question, needed)):
        needed.add("search_patient")
    one_drug = len(entities["drug_mentions"]) < 2
    if "check_drug_interactions" in needed and one_drug and (known_patient or entities["patient_names"]):
        needed.add("get_patient_chart")  # the other drugs stand in the chart
    reads_last = READ_LAST.search(question) and "search_patient" not in needed
    order = [*ORDER[:1], *ORDER[2:], ORDER[1]] if reads_last else ORDER
    return [name for name in order if name in needed]


def unwanted_tools(question: str) -> set[str]:
    """Look-ups that a question refuses and does not ask for: "I don't want trials, I want publications"."""
    question = request(question)
    refused = " ".join(found[0] for found in UNWANTED.finditer(question))
    return _named(refused) - _named(UNWANTED.sub(" ", question))


def _named(text: str) -> set[str]:
    """Look-ups whose keywords stand in a text."""
    patterns = [TASK_PATTERNS[name] for name in KNOWLEDGE]
    return {tool for pattern in patterns if _has_word(text, pattern["keywords"]) for tool in pattern["requires"]}


def missing_tools(state: AgentState) -> list[str]:
    """Required tools that were not tried yet and still can be, in order.

    A tool that failed and was skipped was tried: the answer says that it was unavailable. Where a search found
    nobody, what needs a patient can no longer be done.
    """
    entities = known.entities(state)
    tried = {item["tool_name"] for item in state.get("tool_results") or []}
    has_patient = bool(state.get("active_patient")) and not _searches_for_another(state)
    required = required_tools(state["user_query"], entities, has_patient)
    missing = [name for name in required if name not in tried or asked_again(name, required, state)]
    if "search_patient" in tried and not known.patient_ids(state):
        missing = [name for name in missing if name not in NEEDS_PATIENT]
    return missing


def undecided(state: AgentState) -> bool:
    """Whether the question may mean a write that no pattern requires and nobody decided on: then the model says."""
    if state.get("proposed_none"):
        return False
    tried = {item["tool_name"] for item in state.get("tool_results") or []}
    possible = writes_possible(state["user_query"], known.entities(state))
    return not tried & set(possible) and bool(possible) and bool(known.patient_ids(state))


def task_complete(state: AgentState) -> bool:
    """Whether the turn goes to its answer: nothing required is missing, or a safety valve opens."""
    if state.get("step_count", 0) >= MAX_STEPS or is_duplicate(state):
        return True
    if state.get("proposed_none") and _valve(state):
        return True
    if missing_tools(state) or undecided(state):
        return False
    return bool(state.get("tool_results")) or bool(state.get("proposed_none"))


def none_is_right(state: AgentState) -> bool:
    """Whether the model's "no more tools" may be believed: the task patterns agree."""
    return not missing_tools(state)


def is_duplicate(state: AgentState) -> bool:
    """Whether the last call repeats one that had succeeded: same tool, same arguments. A retry does not."""
    results = state.get("tool_results") or []
    return bool(results) and _repeats(results[-1]["tool_name"], results[-1]["args"], results[:-1])


def is_repeat(name: str, args: Mapping[str, Any], state: AgentState) -> bool:
    """Whether a call that is about to be made was made in this turn, and succeeded."""
    return _repeats(name, args, state.get("tool_results") or [])


def _knowledge(question: str, entities: ExtractedEntities) -> set[str]:
    text = _OTHER.sub(" ", UNWANTED.sub(" ", question))
    drugs = len(entities["drug_mentions"])
    needed: set[str] = set()
    for name in KNOWLEDGE:
        pattern = TASK_PATTERNS[name]
        words = pattern.get("keywords_with_drug", []) if drugs else []
        words = [*words, *(pattern.get("keywords_with_two_drugs", []) if drugs > 1 else [])]
        beside = LITERATURE_ON.sub(" ", text)
        if _has_word(text, pattern["keywords"]) or (words and _has_word(beside, words)):
            needed.update(pattern["requires"])
    if drugs and CHECK_AGAINST.search(text):
        needed.add("check_drug_interactions")
    if TRIAL_STUDIES.search(text):
        needed.add("find_clinical_trials")
        if not _has_word(TRIAL_STUDIES.sub(" ", text), TASK_PATTERNS["literature_search"]["keywords"]):
            needed.discard("search_medical_literature")
    if PUBLISHED_TRIAL.search(question):
        needed.add("search_medical_literature")
    if entities["nct_ids"]:
        needed.add("find_clinical_trials")
    return needed


def _has_word(text: str, words: list[str]) -> bool:
    joined = "|".join(re.escape(word) for word in words)
    return bool(re.search(rf"(?<![\w-])(?:{joined})s?(?![\w])", text, re.IGNORECASE))


def _searches_nameless(question: str, needed: set[str]) -> bool:
    """A patient is to be looked up, and no name was recognised: the search asks for it."""
    if anonymous(question):
        return False
    patient = re.search(r"\bpatient\b", question, re.IGNORECASE)
    lookup = re.search(
        r"\b(?:find|search|locate|look\s?up)\s+(?:for\s+)?(?:a\s+|the\s+)?patient\s+\w", question, re.IGNORECASE
    )
    return bool(patient and ("get_patient_chart" in needed or lookup))


def _searches_for_another(state: AgentState) -> bool:
    """Whether the question names somebody else than whom the turn settled on."""
    return known.other_patient_named(state) and not known.found_patients(state)


def _valve(state: AgentState) -> bool:
    """A "none" against the patterns is overruled once. Twice in a row, and the model has nothing else to offer."""
    path = state.get("path") or []
    return path.count("tool_select") - path.count("tool_execute") >= MAX_REFUSED


def _repeats(name: str, args: Mapping[str, Any], results: list[ToolResult]) -> bool:
    return any(
        item["tool_name"] == name and not item["error"] and _same(item["args"]) == _same(args) for item in results
    )


def _same(args: Mapping[str, Any]) -> str:
    """Arguments without differences that change nothing: case, blanks, the order of drugs, absent options."""

    def plain(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return sorted(plain(item) for item in value)
        return " ".join(str(value).casefold().split())

    return json.dumps({key: plain(value) for key, value in sorted(args.items()) if value not in (None, "", [])})
