"""Patient search on a FHIR server: the server finds candidates, and our own rule says which of them fit."""

import re
from collections.abc import Sequence
from dataclasses import replace

from docgemma.ehr.base import NAMED, PatientMatch, Resource
from docgemma.ehr.client import PAGE, Session
from docgemma.ehr.fhir import ID, family_text, name_text, patient_match
from docgemma.ehr.identifiers import best_of, identifier_key, patient_keys
from docgemma.ehr.names import TITLES, index_tokens, name_key, nearest, query_tokens, ranked
from docgemma.text.words import fold

CANDIDATES = 1000  # patients read to find the ones whose name fits
WIDENED = 100  # of each word, when nobody has the whole name
QUERY_WORDS = 4
ANY_WORDS = 12  # of a free text, in one search for patients who have any of them
ASKED_ALONE = 3  # groups that get a search of their own, when too many have any of the words
ANY_VALUES = 12  # identifiers in one search
ESCAPED = str.maketrans({char: f"\\{char}" for char in "\\,$|"})  # these have a meaning in a FHIR search


async def find_patients(session: Session, text: str) -> list[PatientMatch]:
    """Patients whose name, or whose id, is this text; best first; guesses only where nobody's name is spelt this way.

    Raises:
        RemoteError
    """
    if ID.fullmatch(text) and any(char.isdigit() for char in text) and (known := await session.read("Patient", text)):
        return [patient_match(known)]
    words = [word for word in re.findall(r"[\w'’-]+", text) if fold(word) not in TITLES][:QUERY_WORDS] or [text]
    if found := _fitting(await _search(session, [("name", word) for word in words], CANDIDATES), text):
        return found
    for part in (words, [word[:3] for word in words]):
        wider = [await _search(session, [("name", word)], WIDENED) for word in dict.fromkeys(part)]
        if found := _fitting([patient for patients in wider for patient in patients], text):
            return found
    return []


async def identified(session: Session, values: Sequence[str]) -> dict[str, list[PatientMatch]]:
    """Whose id or identifier each of these is, in two searches. A server does not find an MRN without its letters."""
    values = list(dict.fromkeys(values))[:ANY_VALUES]
    cases = list(dict.fromkeys(case for value in values for case in (value, value.upper(), value.lower())))
    found = await _search(session, [("identifier", cases)]) if cases else []
    if ids := [case for case in cases if ID.fullmatch(case)]:
        found += await _search(session, [("_id", ids)])
    people = {patient["id"]: (patient_keys(patient), patient_match(patient)) for patient in found}
    fits = {value: [match for keys, match in people.values() if identifier_key(value) in keys] for value in values}
    return {value: best_of(value, matches) for value, matches in fits.items() if matches}


async def named_patients(
    session: Session, groups: Sequence[Sequence[str]], born: Sequence[str]
) -> list[list[PatientMatch]]:
    """RecordStore.named: one search for anybody with a word of these; if there are too many, one for each of the first
    groups. What the server returns is compared with our own rule."""
    words = list({name_key(word): word for word in (max(group, key=len) for group in groups if group)}.values())
    words = [word for word in words if len(word) > 2][:ANY_WORDS] or words[:1]
    if not words:
        return [[] for _ in groups]
    narrow = [("birthdate", list(born))] if born else []
    found = await _search(session, [("name", words), *narrow])
    if len(found) >= NAMED:
        for group in groups[:ASKED_ALONE]:
            found += await _search(session, [*(("name", word) for word in group), *narrow])
    people = {patient["id"]: patient for patient in found}.values()
    return [
        ranked([patient_match(item) for item in people if _holds(group, item)], " ".join(group)) for group in groups
    ]


async def born_on(session: Session, days: Sequence[str]) -> list[PatientMatch]:
    """Patients born on one of these days; a server that ignores the search is not believed."""
    found = [item for day in days[:2] for item in await _search(session, [("birthdate", day)])]
    return [patient_match(item) for item in found if item.get("birthDate") in days]


async def _search(
    session: Session, params: Sequence[tuple[str, str | list[str]]], limit: int = NAMED
) -> list[Resource]:
    """Current patients, not those merged into another record. A list means any of its values."""
    values = [(key, [value] if isinstance(value, str) else value) for key, value in params]
    query = [(key, ",".join(item.translate(ESCAPED) for item in value)) for key, value in values]
    found = await session.search("Patient", [*query, PAGE], limit)
    return [item for item in found if not any(link.get("type") == "replaced-by" for link in item.get("link") or [])]


def _fitting(patients: Sequence[Resource], text: str) -> list[PatientMatch]:
    """The nearest of these, best first; guesses if none is spelt this way."""
    distance, found = nearest(query_tokens(text), [(patient_match(item), _words(item)) for item in patients])
    return ranked([replace(match, guessed=distance != 0) for match in found], text)


def _holds(group: Sequence[str], patient: Resource) -> bool:
    """Whether all these words are of the patient's name, one of them of the family name."""
    keys = {name_key(word) for word in group}
    families = {word for name in patient.get("name") or [] for word in index_tokens(family_text(name))}
    return keys <= _words(patient) and not keys.isdisjoint(families)


def _words(patient: Resource) -> set[str]:
    return {word for name in patient.get("name") or [] for word in index_tokens(name_text(name))}
