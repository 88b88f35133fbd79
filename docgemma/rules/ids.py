"""Patient ids and control characters in a text. Pure."""

import re

from docgemma.rules.known import unique

# of the spec, in any case and never inside a longer token: covid-190 and 555-123-4567 are no patients
PATIENT_ID = re.compile(
    r"(?<![\w-])(?:[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}|[a-z]{3}-[0-9]{3})(?![\w-])", re.IGNORECASE
)
NOT_IDS = ("icd-", "cpt-", "dsm-", "nct-", "tel-", "fax-", "ext-", "iso-")
HYPHENS = str.maketrans(dict.fromkeys("‐‑‒–−", "-"))
# bidirectional marks, zero-width spaces, byte-order mark; joiners stay, some scripts need them
INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
)


def patient_ids(text: str) -> list[str]:
    """Ids of both kinds, lower case, in order of appearance."""
    found = (match.group().lower() for match in PATIENT_ID.finditer(text.translate(HYPHENS)))
    return unique([item for item in found if not item.startswith(NOT_IDS)])


def clean(text: str) -> str:
    """The text without control characters, bidirectional marks and zero-width spaces."""
    return INVISIBLE.sub("", text)
