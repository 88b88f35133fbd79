"""Name search on a FHIR server: the server finds candidates, and our own rule says which of them fit."""

import re
from collections.abc import Sequence
from dataclasses import replace

from docgemma.ehr.base import NAMED, PatientMatch
from docgemma.ehr.client import PAGE, Session
from docgemma.ehr.fhir import ID, Resource, family_text, name_text, patient_match
from docgemma.ehr.identifiers import best_of, identifier_key, patient_keys
from docgemma.characters import fold
from docgemma.ehr.names import TITLES, closeness, index_tokens, name_key, query_tokens
from docgemma.ehr.names import ranked

CANDIDATES = 1000  # patients read to find the ones whose name fits
WIDENED = 100  # of each word, when nobody has the whole name
QUERY_WORDS = 4
ANY_WORDS = 12  # of a free text, in one search for patients who have any of them
ASKED_ALONE = 3  # groups that get a search of their own, when too many have any of the words
ANY_VALUES = 12  # identifiers in one search


async def find_patients(session: Session, text: str) -> list[PatientMatch]:
    """Patients whose name, or whose id, is this text; best first; guesses only where nobody's name is spelt this way.

    Raises:
        RemoteError
    """
    if ID.fullmatch(text) and any(char.isdigit() for char in text) and (known := await session.read("Patient", text)):
        return [patient_match(known)]
    words = [word for word in re.findall(r"[\w'’-]+", text) if fold(word) not in TITLES][:QUERY_WORDS] or [text]
    if found := _fitting(await _named(session, words, CANDIDATES), text):
        return found
    for part in (words, [word[:3] for word in words]):
        wider = [await _named(session, [word], WIDENED) for word in dict.fromkeys(part)]
        if found := _fitting([patient for patients in wider for patient in patients], text):
            return found
    return []


async def identified(session: Session, values: Sequence[str]) -> dict[str, list[PatientMatch]]:
    """Whose id or identifier each of these is, in two searches. A server does not find an MRN without its letters."""
    values = list(dict.fromkeys(values))[:ANY_VALUES]
    cases = dict.fromkeys(case for value in values for case in (value, value.upper(), value.lower()))
    if not cases:
        return {}
    page = ("_count", str(NAMED))
    found = await session.search("Patient", [("identifier", ",".join(map(_escaped, cases))), page], NAMED)
    if ids := [case for case in cases if ID.fullmatch(case)]:
        found += await session.search("Patient", [("_id", ",".join(ids)), page], NAMED)
    people = {patient["id"]: (patient_keys(patient), patient_match(patient)) for patient in found if _current(patient)}
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
    page = ("_count", str(NAMED))
    narrow = [("birthdate", ",".join(born))] if born else []
    any_word = ("name", ",".join(map(_escaped, words)))
    found = await session.search("Patient", [any_word, *narrow, page], NAMED)
    if len(found) >= NAMED:
        for group in groups[:ASKED_ALONE]:
            each = [("name", _escaped(word)) for word in group]
            found += await session.search("Patient", [*each, *narrow, page], NAMED)
    people = {patient["id"]: _indexed(patient) for patient in found if _current(patient)}
    return [
        ranked(
            [match for match, all_words, family in people.values() if _holds(group, all_words, family)], " ".join(group)
        )
        for group in groups
    ]


def _indexed(patient: Resource) -> tuple[PatientMatch, set[str], set[str]]:
    names = patient.get("name") or []
    family = {word for name in names for word in index_tokens(family_text(name))}
    return patient_match(patient), _words(patient), family


def _holds(group: Sequence[str], words: set[str], family: set[str]) -> bool:
    keys = [name_key(word) for word in group]
    return bool(keys) and words.issuperset(keys) and not family.isdisjoint(keys)


def _words(patient: Resource) -> set[str]:
    return {word for name in patient.get("name") or [] for word in index_tokens(name_text(name))}


def _current(patient: Resource) -> bool:
    """Not merged into another record."""
    return not any(link.get("type") == "replaced-by" for link in patient.get("link") or [])


async def born_on(session: Session, days: Sequence[str]) -> list[PatientMatch]:
    """Patients born on one of these days; a server that ignores the search is not believed."""
    found = [
        item for day in list(days)[:2] for item in await session.search("Patient", [("birthdate", day), PAGE], NAMED)
    ]
    return [patient_match(item) for item in found if item.get("birthDate") in days and _current(item)]


async def _named(session: Session, words: list[str], limit: int) -> list[Resource]:
    return await session.search("Patient", [*(("name", _escaped(word)) for word in words), PAGE], limit)


def _fitting(patients: list[Resource], text: str) -> list[PatientMatch]:
    """The nearest of these, best first; guesses if none is spelt this way."""
    tokens, fits = query_tokens(text), {}
    for patient in patients:
        words = _words(patient)
        if words and _current(patient) and (near := closeness(tokens, words)) is not None:
            fits.setdefault(near, {})[patient["id"]] = patient_match(patient)
    if not fits:
        return []
    best = min(fits)
    return [replace(match, guessed=best > 0) for match in ranked(list(fits[best].values()), text)]


def _escaped(text: str) -> str:
    """A value of a FHIR search, in which these characters have a meaning."""
    return re.sub(r"([\\,$|])", r"\\\1", text)
