"""What an identifying argument may be: an enumeration of what was said or found (design, decision 13).

A model then chooses among values that exist, and cannot invent a patient, a drug or a dose. An empty list means that
nothing of the kind was said, so the argument is asked for; None means free text.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from rapidfuzz import fuzz

from docgemma.errors import RETRYABLE
from docgemma.rules import known
from docgemma.rules.again import listed_patients
from docgemma.rules.allergy_spans import allergens, reactions
from docgemma.rules.details import allergy_severity, doses, frequencies, trial_status, without_amounts
from docgemma.rules.drug_words import DRUG_STEM
from docgemma.rules.drugs import DrugNames
from docgemma.rules.ids import PATIENT_ID, clean
from docgemma.rules.name_words import NOT_NAMES, TITLES
from docgemma.rules.note_spans import note_texts, note_types
from docgemma.rules.numbers import NUMBER_WORDS
from docgemma.rules.orders import Order, orders
from docgemma.rules.phrases import EDGE_WORDS, phrases
from docgemma.rules.request import request
from docgemma.rules.subject_spans import conditions, queries
from docgemma.schemas import TOOL_ARG_SCHEMAS
from docgemma.state import AgentState

MAX_OPTIONS = 2000
SURNAME_FIRST = re.compile(r"\b([^\W\d_][\w'’-]+), ([^\W\d_][\w’-]+)\b")  # García, Maria
NEARLY = 85  # of 100: one or two letters of a drug's name are wrong
SPAN_WORDS = {"drug": 3, "name": 4, "dosage": 6, "frequency": 6}
INSTRUCTION = re.compile(
    r"\b(?:with (?:food|meals|water|a glass)|after (?:meals|food)|before (?:meals|food|breakfast)|on an empty stomach|"
    r"avoid \w+|taper\w*|instructions?:|notes?:|for \d+ (?:days|weeks|months)|until )",
    re.IGNORECASE,
)
OFTEN = re.compile(
    r"\b(?:daily|day|days|weekly|week|every|hours?|hourly|night|nightly|bedtime|morning|evening|noon|needed|prn|once|twice|"
    r"times|meals?|q\d+h?|bid|tid|qid|qd|od|bd|tds|monthly|month)\b",
    re.IGNORECASE,
)
ROUTE = r"(?:SC|IV|IM|PO|SL|PR|subq|subcut\w*|sublingual\w*|topical\w*|orally|by mouth)\b"
# an order without a frequency goes to a person with that finding, never with a guess
NOT_SPECIFIED = "not specified"
JOINS_DRUGS = re.compile(r"\b(?:and|with|plus|between|versus|vs)\b|[,/+&]", re.IGNORECASE)


def choices(field: str, tool: str, state: AgentState, dictionary: DrugNames | None = None) -> list[str] | None:
    """The values that an argument may take, as written, likeliest first, without repeats, at most 2,000.

    Args:
        field: the argument's name.
        tool: the tool's name.
        state: of the turn, entities extracted.
        dictionary: finds drugs in the history's texts as well.

    Returns:
        The options; [] if nothing fits, None if the argument is free text.
    """
    text = clean(state["user_query"])
    entities = known.entities(state)
    if tool != "save_clinical_note":
        text = request(text)
    several = orders(text, entities["drug_mentions"]) if tool == "prescribe_medication" else []
    if order := next_order(several, state):
        ordered = {"medication_name": [order.drug], "dosage": order.dosages, "frequency": order.frequencies}
        if ordered.get(field):
            return _tidy(ordered[field], field, tool, state)
    read: dict[str, Callable[[], Iterable[str]]] = {
        "patient_id": lambda: _patients(tool, state),
        "name": lambda: _names(text, state),
        "drug_name": lambda: _drugs(text, _named(text, state), state, dictionary),
        "medication_name": lambda: _drugs(text, _dosed(text, _named(text, state)), state, dictionary),
        "drug_names": lambda: _drug_lists(text, state, dictionary),
        "dosage": lambda: _with_route(text, doses(text)) or _holding(text, "dosage", _has_number),
        "frequency": lambda: frequencies(text) or _holding(text, "frequency", OFTEN.search) or [NOT_SPECIFIED],
        "substance": lambda: allergens(text, entities["drug_mentions"], entities["patient_names"]),
        "reaction": lambda: reactions(text, [*entities["drug_mentions"], *entities["patient_names"]]),
        "condition": lambda: conditions(text),
        # what to look for in an image is what was asked
        "query": lambda: [text] if tool == "analyze_medical_image" else queries(text),
        "status": lambda: [trial_status(text, about_trials=True) or ""],
        "severity": lambda: [allergy_severity(text) or ""],
        "note_type": lambda: note_types(text),
        "note_text": lambda: note_texts(text),
        "notes": lambda: [text[match.start() :] for match in INSTRUCTION.finditer(text)],
    }
    if field not in read:
        return None
    return _tidy(read[field](), field, tool, state)


def next_order(several: Sequence[Order], state: AgentState) -> Order | None:
    """The first order of a list that was not made in this turn; the last one where all were."""
    made = known.tried(state, "prescribe_medication", "medication_name")
    left = [order for order in several if order.drug.casefold() not in made]
    return next(iter(left or several[-1:]), None)


def _patients(tool: str, state: AgentState) -> list[str]:
    """Ids that may be meant; of several charts that are asked for, those that were not read yet."""
    found = known.patient_ids(state)
    if tool == "get_patient_chart" and listed_patients(state):
        read = known.tried(state, tool, "patient_id")
        return [item for item in found if item.casefold() not in read][:1] or found
    return found


def _holding(text: str, kind: str, test: Callable[[str], object]) -> list[str]:
    """Spans that say a dose or a frequency; without one there is no option, and so no invented value."""
    spans = phrases(PATIENT_ID.sub(",", text), SPAN_WORDS[kind], edges=True)
    return [span for span in spans if test(span)][::-1]


def _with_route(text: str, found: Sequence[str]) -> list[str]:
    """Each dose, and the same with the route that follows it: "5000 units SC"."""
    joined = [match.group() for dose in found for match in re.finditer(rf"{re.escape(dose)}\s{ROUTE}", text)]
    return [*found, *joined]


def _names(text: str, state: AgentState) -> list[str]:
    """Names that were extracted, those not searched yet first; else whatever could be one."""
    names = known.entities(state)["patient_names"]
    if names:
        tried = [str(item["args"].get("name", "")).casefold() for item in state.get("tool_results") or []]
        return sorted(names, key=lambda name: name.casefold() in tried)
    spans = [
        span
        for span in phrases(text, SPAN_WORDS["name"])
        if not re.search(r"['’]s\s", span)
        and not any(
            word.casefold().strip(".'’") in NOT_NAMES | TITLES or any(map(str.isdigit, word)) for word in span.split()
        )
    ]
    surname_first = [pair[0] for pair in SURNAME_FIRST.finditer(text) if pair[1][0].isupper() and pair[2][0].isupper()]
    return [*surname_first, *sorted(spans, key=lambda span: not span[0].isupper())]


def _named(text: str, state: AgentState) -> list[str]:
    """Drugs of the question; those that stand only in the note it dictates, where there are no others."""
    mentions = known.entities(state)["drug_mentions"]
    return [name for name in mentions if name in text] or mentions


def _dosed(text: str, drugs: Sequence[str]) -> list[str]:
    """The one drug that a dose follows, or stands before, where others are only spoken of; else all."""
    said = "|".join(map(re.escape, doses(text)))
    beside = [
        name
        for name in drugs
        if said
        and re.search(
            rf"{re.escape(name)}\s+(?:[A-Za-z]{{1,12}}\s+)?(?:{said})|(?:{said})\s+(?:of\s+)?{re.escape(name)}", text
        )
    ]
    return beside if len(beside) == 1 else list(drugs)


def _drugs(text: str, asked: list[str], state: AgentState, dictionary: DrugNames | None) -> list[str]:
    """Drugs of the question (`asked`), else of the charts and the history, else any words; none looked up already."""
    if unknown := _misspelt(text, asked, dictionary):
        return [*asked, *unknown]  # never a drug of the history in place of one that was named and is not known
    if asked:
        done = {str(item["args"].get("drug_name", "")).casefold() for item in known.succeeded(state)}
        return [name for name in asked if name.casefold() not in done] or asked
    return known.drugs(state, dictionary) or _unknown_drugs(text)


def _drug_lists(text: str, state: AgentState, dictionary: DrugNames | None) -> list[str]:
    asked = _named(text, state)
    if len(asked) >= 2:
        return list(asked)
    found = known.drugs(state, dictionary)
    if len(found) < 2 and JOINS_DRUGS.search(text):
        return [*found, *_unknown_drugs(text)]
    return found


def _misspelt(text: str, asked: Sequence[str], dictionary: DrugNames | None) -> list[str]:
    """Words that look like a drug's name and are none that is known: nearly one, or with a drug name's ending."""
    if dictionary is None:
        return []
    named = {word.casefold() for name in asked for word in name.split()}
    words = known.unique(re.findall(r"[^\W\d_]{6,}", text[:2000]))
    new = [word for word in words if word.casefold() not in named | EDGE_WORDS | NOT_NAMES and word not in dictionary]
    return [word for word in new if DRUG_STEM.match(word.casefold()) or (not asked and _nearly(word, dictionary))]


def _nearly(word: str, dictionary: DrugNames) -> bool:
    return any(fuzz.ratio(word.casefold(), name) >= NEARLY for name in dictionary.suggest(word, 1))


def _unknown_drugs(text: str) -> list[str]:
    """Words that may be a drug which the dictionary lacks."""
    return [
        span
        for span in phrases(without_amounts(text), SPAN_WORDS["drug"])[::-1]
        if not any(word.casefold().strip(".'’") in NOT_NAMES or PATIENT_ID.fullmatch(word) for word in span.split())
    ]


def _has_number(span: str) -> bool:
    return bool(re.search(r"\d", span)) or any(word.casefold() in NUMBER_WORDS for word in span.split())


def _tidy(values: Iterable[str], field: str, tool: str, state: AgentState) -> list[str]:
    limit = _max_length(tool, field)
    plain = (" ".join(value.split()) for value in values)
    kept = known.unique(value.strip(" ,;") for value in plain if 0 < len(value) <= limit)
    failed = _failed_values(field, tool, state)
    left = [value for value in kept if value.casefold() not in failed]
    return (left or kept)[:MAX_OPTIONS]


def _failed_values(field: str, tool: str, state: AgentState) -> set[str]:
    """Values that this tool could do nothing with; a busy service says nothing about a value."""
    failed = [
        item
        for item in state.get("tool_results") or []
        if item["tool_name"] == tool and item["error"] and item["error_type"] not in RETRYABLE
    ]
    values = [item["args"].get(field) for item in failed]
    return {value.casefold() for value in values if isinstance(value, str)} if field not in ("patient_id",) else set()


def _max_length(tool: str, field: str) -> int:
    """Of the argument in its schema, so that no option is refused later."""
    info = TOOL_ARG_SCHEMAS[tool].model_json_schema()["properties"].get(field, {})
    kinds: Sequence[dict] = [info, info.get("items", {}), *info.get("anyOf", [])]
    return next((kind["maxLength"] for kind in kinds if "maxLength" in kind), 300)
