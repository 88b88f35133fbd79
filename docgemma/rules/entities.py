"""What code reads from a question before any model does: ids, names, drugs, verbs (v3 spec, section 4, node 1)."""

import re

from docgemma.rules.details import allergy_severity, dates, doses, frequencies, trial_status
from docgemma.rules.drugs import DrugNames
from docgemma.rules.known import unique
from docgemma.rules.names import NameSpan, find_names
from docgemma.state import ExtractedEntities

__all__ = ["allergy_severity", "clean", "dates", "doses", "extract", "frequencies", "patient_ids", "trial_status"]

# of the spec, in any case and never inside a longer token: covid-190 and 555-123-4567 are no patients
PATIENT_ID = re.compile(
    r"(?<![\w-])(?:[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}|[a-z]{3}-[0-9]{3})(?![\w-])", re.IGNORECASE
)
NOT_IDS = ("icd-", "cpt-", "dsm-", "nct-", "tel-", "fax-", "ext-", "iso-")
NCT_ID = re.compile(r"(?<![A-Za-z0-9])NCT[\s:#-]?(\d{8})(?!\d)", re.IGNORECASE)
HYPHENS = str.maketrans(dict.fromkeys("‐‑‒–−", "-"))
# bidirectional marks, zero-width spaces, byte-order mark; joiners stay, some scripts need them
INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
)

VERBS = {  # each with the forms that are not simply verb + s, ed, ing
    "prescribe": "prescribes prescribed prescribing",
    "document": "",
    "check": "",
    "search": "searches",
    "save": "saves saved saving",
    "find": "found",
    "look": "",
    "verify": "verifies verified",
    "review": "",
    "show": "",
    "get": "getting",
    "pull": "",
    "open": "",
    "start": "",
    "order": "",
    "add": "",
    "record": "",
    "write": "writes wrote writing",
    "log": "logged logging",
    "note": "noted noting",
    "analyze": "analyzes analyzed analyzing analyse analyses analysed analysing",
    "interpret": "",
    "read": "",
    "compare": "compares compared comparing",
    "summarize": "summarizes summarized summarizing summarise summarised summarising",
    "list": "",
    "explain": "",
    "give": "gives giving",
    "stop": "stopped stopping",
    "retrieve": "retrieves retrieved retrieving",
    "identify": "identifies identified",
    "describe": "describes described describing",
    "create": "creates created creating",
    "update": "updates updated updating",
}
_VERB_OF = {
    form: verb for verb, forms in VERBS.items()
    for form in (verb, f"{verb}s", f"{verb}ed", f"{verb}ing", *forms.split())
}  # fmt: skip


def extract(question: str, drugs: DrugNames, has_image: bool = False) -> ExtractedEntities:
    """Entities of a question. Ids are lower-cased; names and drugs stand as written, in order, without repeats."""
    text = clean(question)
    mentions = drugs.find(text)
    names = find_names(text, mentions)
    outside = [item for item in mentions if not any(_inside(item.start, name) for name in names)]
    return ExtractedEntities(
        patient_ids=patient_ids(text),
        patient_names=unique([name.text for name in names]),
        drug_mentions=unique([" ".join(item.text.split()) for item in outside]),
        action_verbs=unique([_VERB_OF[word] for word in re.findall(r"[a-z]+", text.lower()) if word in _VERB_OF]),
        nct_ids=unique([f"NCT{match.group(1)}" for match in NCT_ID.finditer(text)]),
        has_image=has_image,
    )


def patient_ids(text: str) -> list[str]:
    """Ids of both kinds, lower case, in order of appearance."""
    found = (match.group().lower() for match in PATIENT_ID.finditer(text.translate(HYPHENS)))
    return unique([item for item in found if not item.startswith(NOT_IDS)])


def clean(text: str) -> str:
    """The text without control characters, bidirectional marks and zero-width spaces."""
    return INVISIBLE.sub("", text)


def _inside(position: int, name: NameSpan) -> bool:
    return name.start <= position < name.end
