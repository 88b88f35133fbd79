"""What code reads from a question before any model does: ids, names, drugs, verbs (v3 spec, section 4, node 1)."""

import re

from docgemma.rules.details import allergy_severity, dates, doses, frequencies, trial_status
from docgemma.rules.drugs import DrugNames
from docgemma.rules.ids import PATIENT_ID, clean, patient_ids
from docgemma.rules.known import unique
from docgemma.rules.names import NameSpan, find_names
from docgemma.rules.request import request
from docgemma.state import ExtractedEntities

__all__ = ["allergy_severity", "clean", "dates", "doses", "extract", "frequencies", "patient_ids", "trial_status"]

NCT_ID = re.compile(r"(?<![A-Za-z0-9])NCT[\s:#-]?(\d{8})(?!\d)", re.IGNORECASE)
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


def extract(question: str, drugs: DrugNames, has_image: bool = False, patient_open: bool = False) -> ExtractedEntities:
    """Entities of a question. Ids are lower-cased; names and drugs stand as written, in order, without repeats.

    Whoever is named in the text of a note alone is not the patient, where the patient is known: by an id, by a name
    outside of the note, or (`patient_open`) from the conversation.
    """
    text = clean(question)
    mentions = drugs.find(text)
    names = find_names(text, mentions)
    asking = request(text)
    outside_note = [name for name in names if name.text in asking]
    if patient_open or outside_note or PATIENT_ID.search(asking):
        names = outside_note
    outside = [item for item in mentions if not any(_inside(item.start, name) for name in names)]
    return ExtractedEntities(
        patient_ids=patient_ids(text),
        patient_names=unique([name.text for name in names]),
        drug_mentions=unique([" ".join(item.text.split()) for item in outside]),
        action_verbs=unique([_VERB_OF[word] for word in re.findall(r"[a-z]+", text.lower()) if word in _VERB_OF]),
        nct_ids=unique([f"NCT{match.group(1)}" for match in NCT_ID.finditer(text)]),
        has_image=has_image,
    )


def _inside(position: int, name: NameSpan) -> bool:
    return name.start <= position < name.end
