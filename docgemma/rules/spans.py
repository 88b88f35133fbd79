"""What an identifying argument may be: an enumeration of what was said or found (design, decision 13).

A model then chooses among values that exist, and cannot invent a patient, a drug or a dose. An empty list means that
nothing of the kind was said, so the argument is asked for; None means free text.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from rapidfuzz import fuzz

from docgemma.errors import RETRYABLE
from docgemma.rules import known
from docgemma.rules.details import allergy_severity, doses, frequencies, trial_status
from docgemma.rules.drug_classes import classes_said
from docgemma.rules.drug_words import DRUG_STEM
from docgemma.rules.drugs import DrugNames
from docgemma.rules.ids import PATIENT_ID, clean
from docgemma.rules.name_words import EPONYMS, NOT_NAMES, TITLES
from docgemma.rules.note_spans import note_texts, note_types
from docgemma.rules.numbers import NUMBER_WORDS
from docgemma.rules.orders import Order, orders
from docgemma.rules.phrases import EDGE_WORDS, phrases
from docgemma.rules.request import request
from docgemma.schemas import TOOL_ARG_SCHEMAS
from docgemma.state import AgentState

MAX_OPTIONS = 2000
SURNAME_FIRST = re.compile(r"\b([^\W\d_][\w'’-]+), ([^\W\d_][\w’-]+)\b")  # García, Maria
NEARLY = 85  # of 100: one or two letters of a drug's name are wrong
SPAN_WORDS = {
    "condition": 12, "substance": 3, "reaction": 8, "query": 12, "drug": 3, "name": 4, "dosage": 6, "frequency": 6,
}  # fmt: skip
DEGREE = re.compile(
    r"\s*[,/;.]\s*(?:severity\s*(?:is|was|:|=)?\s*|it was\s+)?(?:not (?:at all |too |very )?)?"
    r"(?:mild|moderate|severe|serious)\b",
    re.IGNORECASE,
)  # it has a field of its own
REACTION_CUE = re.compile(
    r"(?:→|[-=]>)\s*|\breactions?(?:\s*(?:was|is|were|:|=|-)\s*|\s+(?!to\b|from\b|of\b|in\b|on\b|with\b|after\b))",
    re.IGNORECASE,
)
CLAUSE_END = re.compile(r"[;:!?()\n]|\.(?=\s|$)")
NOT_REACTION = re.compile(r"\b(?:from|with|to|by|last|ago|when|while|if)\b", re.IGNORECASE)
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
# "…, and are trials recruiting": another request begins
REQUEST_NEXT = re.compile(
    r",?\s+(?:and|plus|then|also)\s+(?=(?:then\s+|also\s+)?(?:are|is|does|do|any|whether|what|whatever|which|check|find|look|"
    r"show|see|tell|list|search|get|pull|review|prescribe|order|save|document|record|give|send|let|need|want|i|we|my|"
    r"the\s+(?:black|boxed|fda|safety|warnings?|interactions?|chart|trials?))\b)",
    re.IGNORECASE,
)
# an id with the words that lead to it: "..., to patient abc-123"
RECIPIENT = re.compile(
    rf"(?:\b(?:to|for|in|on)\s+)?(?:\b(?:the\s+)?(?:patient|pt)\s+)?{PATIENT_ID.pattern}", re.IGNORECASE
)
ORDER_NEXT = re.compile(
    r"(?:,|\bso\b|\band\b)\s*(?=(?:please\s+)?(?:add|put|document|record|log|note|enter|save|update|list)\b)", re.I
)
ABOUT_TRIALS = re.compile(
    r"\b(?:trials?|stud(?:y|ies)|recruiting|enrolling|ongoing|completed|phase|any|still|that|are|been|"
    r"yet|moment|now|currently|please|today|join|could|near|my|should|has|have|"
    r"was|were|is|would|wants?|like|terminated|withdrawn|suspended)\b",
    re.IGNORECASE,
)
# "…, if you would not mind", "…, since 2018": no part of what is looked for
AFTERTHOUGHT = re.compile(
    r",\s*(?=(?:if|whatever|whichever|ideally|preferably|somewhere|anywhere|from|since|so|they|he|she|we|i|you|my|our|"
    r"his|her|not (?!otherwise)|but|only|just|tell|last|past|recent|need|needed|wanted|want|parents?|family|published|"
    r"clinical trials?|(?:19|20)\d\d|the \w+ ones|(?:it|that|there)['’]s)\b)|"
    r"\s(?=(?:since|before|after|from) (?:19|20)\d\d\b)|\s(?=(?:i|we|he|she|they|you)['’](?:re|m|s|ve|d|ll)\b)|"
    r"\s/\s(?=(?:active|recruiting|completed|open|terminated|any)\b)|\s\d\)\s|\bfull stop\b",
    re.IGNORECASE,
)
# where trials are, as a capital says: "in Leeds", "near Salt Lake City", "within reach of Bristol"
PLACE = re.compile(
    r"\s(?:[Ss]omewhere |[Aa]nywhere )?(?:in|near|around|round|at|outside|across|within (?:easy )?reach of|close to)\s+"
    r"(?:the |or near |or around )?(?:(?:[Nn]orth|[Ss]outh|[Ee]ast|[Ww]est)(?:ern)?\s+)?"
    r"((?:[A-Z][^\W\d_]*[a-zà-ÿ][’'-]?[^\W\d_]*|U[KS]A?|EU)(?:[\s-](?:[A-Z][^\W\d_]+|upon|under|on|the|of|de)(?=[\s-][A-Z]|\b))*)"
    r"(?=\s*(?:$|[,.;:?!)]|\b(?:for|that|which|with|on|and|or|please|pls|recruiting|enrolling|open|right|now|today)\b))"
)
COMMA_PLACE = re.compile(r",\s*[A-Z][a-z]+(?:\s+(?:or|and)\s+[A-Z][a-z]+)+(?=\s*(?:[.?!;,]|$))")  # ", Leeds or York"
# "trials there are for HFpEF"
TRIALS_FOR = re.compile(
    r"\b(?:trials?|recruiting|enrolling)\b[^.;?!]*?\b(?:for|in|of|on|into|with)\s+([^.;?!]+)", re.IGNORECASE
)
PERSON = (
    r"lady|gentleman|man|woman|chap|bloke|guy|girl|boy|lad|kid|pt|patients?|neighbou?r|mum|mom|mother|dad|father|wife|"
    r"husband|son|daughter|friend|brother|sister|colleague|clinic"
)
PERSON_END = re.compile(rf"\b(?:{PERSON})$", re.IGNORECASE)
# words that stand beside a condition and are no part of it
PARTS = re.compile(
    rf"{PERSON}|regarding|concerning|studying|treating|having|"
    r"diagnosed|newly|searching|seeking|testing|against|involving|including|targeting|investigating|pubmed|nct|listings?|"
    r"options?|open|active|begun|full",
    re.IGNORECASE,
)
AT_PRESENT = re.compile(r"\b(?:right now|just now|at present|these days|this (?:year|month|week))\b", re.IGNORECASE)
ALLERGY_WORD = re.compile(
    r"\b(?:allerg\w*|intoleran\w*|can['’]?t|cannot|tolerate|patient|adverse|caused)\b", re.IGNORECASE
)
HAPPENS = re.compile(
    r"\b(?:anaphyla\w+|shock|rash\w*|hives|urticaria|swelling|itch\w*|vomiting|nausea|wheez\w+|bronchospasm|"
    r"angio-?o?edema)\b",
    re.IGNORECASE,
)
FORMS = (
    "and or & v g k contrast dye medium media drug drugs antibiotic antibiotics tablet tablets cream ointment patch "
    "patches injection injections vaccine eye drops products derivatives group family sodium potassium phosphate "
    "sulfate sulphate hydrochloride calcium acid"
)
FORM_WORDS = frozenset(FORMS.split())
# an order without a frequency goes to a person with that finding, never with a guess
NOT_SPECIFIED = "not specified"
DEGREES = (
    "mild mildly moderate moderately severe severely serious slight minor allergy allergic allergies reaction "
    "reactions list chart record new document documented update add log her his their patient type side effect badly"
)
DEGREE_WORDS = frozenset(DEGREES.split())
ALLERGIC_TO = (
    r"\b(?:allerg(?:y|ic)|intoleran(?:ce|t)|hypersensitiv(?:e|ity)|react(?:s|ed|ion)?)\s+(?:is\s+|was\s+)?(?:to|of)\s+"
    r"(?:the\s+)?"
)
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
        "drug_name": lambda: _drugs(text, state, dictionary),
        "medication_name": lambda: _drugs(text, state, dictionary),
        "drug_names": lambda: _drug_lists(text, state, dictionary),
        "dosage": lambda: _with_route(text, doses(text)) or _holding(text, "dosage", _has_number),
        "frequency": lambda: frequencies(text) or _holding(text, "frequency", OFTEN.search) or [NOT_SPECIFIED],
        "substance": lambda: _allergens(text, entities["drug_mentions"], entities["patient_names"]),
        "reaction": lambda: _reactions(text, [*entities["drug_mentions"], *entities["patient_names"]]),
        "condition": lambda: _conditions(_without_places(text)) or _conditions(text),
        # what to look for in an image is what was asked
        "query": lambda: [text] if tool == "analyze_medical_image" else [*_phrases(_subject(text), "query"), text],
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
    made = {
        str(item["args"].get("medication_name", "")).casefold()
        for item in state.get("tool_results") or []
        if item["tool_name"] == "prescribe_medication"
    }
    left = [order for order in several if order.drug.casefold() not in made]
    return next(iter(left or several[-1:]), None)


def _patients(tool: str, state: AgentState) -> list[str]:
    """Ids that may be meant; of several charts that are asked for, those that were not read yet."""
    found = known.patient_ids(state)
    read = {item["args"].get("patient_id") for item in state.get("tool_results") or [] if item["tool_name"] == tool}
    if tool == "get_patient_chart" and len(known.entities(state)["patient_ids"]) > 1:
        return [item for item in found if item not in read] or found
    return found


def _phrases(text: str, kind: str) -> list[str]:
    subject = kind in ("query", "condition")
    return phrases(text, SPAN_WORDS[kind], across_commas=subject or kind == "reaction", owners=subject)


def _subject(text: str) -> str:
    """Without what is only said beside it."""
    return AFTERTHOUGHT.sub("; ", REQUEST_NEXT.sub("; ", text))


def _conditions(text: str) -> list[str]:
    text = AT_PRESENT.sub(";", _subject(COMMA_PLACE.sub(";", text)))
    spans = [span for span in _phrases(text, "condition") if _is_condition(span)]
    spans = [span for span in spans if _whole(span, text)] or spans
    led_to = " ".join(match[1] for match in TRIALS_FOR.finditer(text))
    return [span for span in spans if span in led_to] or spans


def _is_condition(span: str) -> bool:
    return not ABOUT_TRIALS.search(span) and not PERSON_END.search(span)


def _whole(span: str, text: str) -> bool:
    """Whether a span is cut where a small word, a mark or the end is: "lung cancer", not "cell lung cancer"."""
    before, after = text[: (at := text.find(span))], text[at + len(span) :]
    left, right = re.search(r"\S+(?=\s+$)", before), re.match(r"\s+(\S+)", after)
    return (not left or _parts(left[0], left[0][-1])) and (not right or _parts(right[1], right[1][0]))


def _parts(word: str, nearest: str) -> bool:
    """Whether a neighbouring word, or the mark on its near side, ends what stands beside it."""
    plain = word.casefold().replace("’", "'").strip(".,;:!?()'-\"“”")
    return not nearest.isalnum() or plain in EDGE_WORDS or bool(PARTS.fullmatch(plain) or ABOUT_TRIALS.search(plain))


def _without_places(text: str) -> str:
    """Without where the trials should be; a person's name may be a disease's: "in Parkinson"."""
    return PLACE.sub(lambda found: found.group() if found[1].casefold() in EPONYMS else ";", text)


def _holding(text: str, kind: str, test: Callable[[str], object]) -> list[str]:
    """Spans that say a dose or a frequency; without one there is no option, and so no invented value."""
    spans = phrases(PATIENT_ID.sub(",", text), SPAN_WORDS[kind], edges=True)
    return [span for span in spans if test(span)][::-1]


def _with_route(text: str, found: Sequence[str]) -> list[str]:
    """Each dose, and the same with the route that follows it: "5000 units SC"."""
    joined = [match.group() for dose in found for match in re.finditer(rf"{re.escape(dose)}\s{ROUTE}", text)]
    return [*found, *joined]


def _not_ordered(drugs: Sequence[str], text: str) -> list[str]:
    """Without those that a dose follows: "allergy to iodine, then start loratadine 10 mg"."""
    return [name for name in drugs if not any(f"{name} {dose}" in text for dose in doses(text))]


def _allergens(text: str, drugs: Sequence[str], people: Sequence[str]) -> list[str]:
    """What somebody may be allergic to; where one drug is plainly said to be it, that drug in the form said."""
    others = _substances(text, people, drugs)
    named = [name for name in drugs if re.search(rf"{ALLERGIC_TO}{re.escape(name)}\b", text, re.IGNORECASE)]
    if len(named) == 1:
        return [*named, *(span for span in others if span.startswith(f"{named[0]} "))]
    return [*_not_ordered(drugs, text), *others]


def _more_than(drugs: Sequence[str], span: str) -> bool:
    """Whether a span goes on after a drug's name with what is no form of it: "amlodipine ankle swelling"."""
    words = {word.casefold() for word in span.split()}
    named = {word.casefold() for name in drugs for word in name.split()}
    return bool(words & named) and not words - named <= FORM_WORDS


def _substances(text: str, people: Sequence[str], drugs: Sequence[str]) -> list[str]:
    """What somebody may be allergic to: neither a person, nor an id, nor how bad it was."""
    text = _without_order(text)
    happened = _happened(text)
    return [
        span
        for span in _phrases(text, "substance")
        if not ALLERGY_WORD.search(span)
        and not HAPPENS.search(span)
        and not _beside(span, people)
        and not any(span in said for said in happened)
        and not _more_than(drugs, span)
    ]


def _happened(text: str) -> list[str]:
    """The reaction, where a word or an arrow leads to it."""
    after = [CLAUSE_END.split(text[match.end() :], maxsplit=1)[0] for match in REACTION_CUE.finditer(text)]
    return [found for clause in after for found in _phrases(clause, "reaction")[:1]]


def _reactions(text: str, named: Sequence[str]) -> list[str]:
    """What happened: neither the patient, nor the drug, nor the word allergy itself, nor only how bad it was."""
    text = ORDER_NEXT.sub("; ", DEGREE.sub(";", _without_order(text)))
    return _happened(text) or [
        span
        for span in _phrases(text, "reaction")
        if not NOT_REACTION.search(span)
        and not re.search(rf"\b(?:to|from|on|by|after)\s+(?:\w+\s+)?{re.escape(span)}", text)
        and not ALLERGY_WORD.search(span)
        and not classes_said(span)
        and not _beside(span, named)
        and span.split()[0].casefold() not in DEGREE_WORDS
    ]


def _without_order(text: str) -> str:
    """Without ids, doses and frequencies, where one clause ends and another begins."""
    for said in [*doses(text), *frequencies(text)]:
        text = text.replace(said, ";")
    return re.sub(r";['’]s\b", ";", RECIPIENT.sub(";", text))


def _beside(span: str, named: Sequence[str]) -> bool:
    """Whether a span names somebody or something else, or is a mere word of degree or command."""
    words = {word.casefold().strip(".,'’") for word in span.split()}
    others = {word.casefold() for name in named for word in name.split()}
    return bool(others & words) or words <= DEGREE_WORDS


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


def _drugs(text: str, state: AgentState, dictionary: DrugNames | None) -> list[str]:
    """Drugs of the question, those not looked up yet first; else of the charts and the history; else any words."""
    asked = known.entities(state)["drug_mentions"]
    if unknown := _misspelt(text, asked, dictionary):
        return [*asked, *unknown]  # never a drug of the history in place of one that was named and is not known
    if asked:
        done = {str(item["args"].get("drug_name", "")).casefold() for item in known.succeeded(state)}
        return [name for name in asked if name.casefold() not in done] or asked
    return known.drugs(state, dictionary) or _unknown_drugs(text)


def _drug_lists(text: str, state: AgentState, dictionary: DrugNames | None) -> list[str]:
    asked = known.entities(state)["drug_mentions"]
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
        for span in phrases(text, SPAN_WORDS["drug"])[::-1]
        if not any(word.casefold().strip(".'’") in NOT_NAMES for word in span.split())
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
