"""Find a patient of the whole record store as somebody types: by name in any order, with a typo, birth date or id."""

from docgemma.ehr.base import PatientMatch, RecordStore
from docgemma.ehr.identifiers import without_label
from docgemma.reading.patients import find_people
from docgemma.text.births import fitting, read_births
from docgemma.text.words import listed, plain

FOUND = 8  # shown at once
LEAST = 2  # characters that are worth a look


def find_patients(text: str, store: RecordStore) -> list[PatientMatch]:
    """Whose id or record number this is, who was born that day, who is called so; at most `FOUND` + 1.

    Raises:
        StoreError: the store cannot be reached or read.
    """
    text = text.strip()
    if len(text) < LEAST:
        return []
    known = store.by_identifier(list(dict.fromkeys([text, without_label(text)])))
    if known:
        return next(iter(known.values()))[: FOUND + 1]
    births = [birth for birth in read_births(text) if birth.kind in ("stated", "date")]
    days = [day for birth in births for day in birth.days if len(day) == 10]
    for birth in reversed(births):
        text = f"{text[: birth.start]} {text[birth.end :]}"
    name = " ".join(text.split())
    if days and len(name) < LEAST:
        return store.born(days)[: FOUND + 1]
    named = store.search_patients(name, limit=FOUND + 1)
    return fitting(named, days) if days else named


def means_somebody(text: str, store: RecordStore) -> bool:
    """Whether a question says "his" or "her" and names nobody: then it means whoever is open.

    Raises:
        StoreError: the store cannot be reached or read.
    """
    words = set(plain(text).replace("'s", "").split())
    return bool(listed("request_words", "persons") & words) and not find_people(text, store)
