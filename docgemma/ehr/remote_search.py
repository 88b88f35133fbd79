"""Name search on a FHIR server: the server finds candidates, and our own rule says which of them fit."""

import re
from dataclasses import replace

from docgemma.ehr.base import PatientMatch
from docgemma.ehr.client import PAGE, Session
from docgemma.ehr.fhir import ID, Resource, name_text, patient_match
from docgemma.ehr.names import TITLES, closeness, fold, index_tokens, query_tokens
from docgemma.ehr.search import ranked

CANDIDATES = 1000  # patients read to find the ones whose name fits
WIDENED = 100  # of each word, when nobody has the whole name
QUERY_WORDS = 4


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


async def _named(session: Session, words: list[str], limit: int) -> list[Resource]:
    return await session.search("Patient", [*(("name", _escaped(word)) for word in words), PAGE], limit)


def _fitting(patients: list[Resource], text: str) -> list[PatientMatch]:
    """The nearest of these, best first; guesses if none is spelt this way."""
    tokens, fits = query_tokens(text), {}
    for patient in patients:
        if any(link.get("type") == "replaced-by" for link in patient.get("link") or []):
            continue
        words = {word for name in patient.get("name") or [] for word in index_tokens(name_text(name))}
        if words and (near := closeness(tokens, words)) is not None:
            fits.setdefault(near, {})[patient["id"]] = patient_match(patient)
    if not fits:
        return []
    best = min(fits)
    return [replace(match, guessed=best > 0) for match in ranked(list(fits[best].values()), text)]


def _escaped(text: str) -> str:
    """A value of a FHIR search, in which these characters have a meaning."""
    return re.sub(r"([\\,$|])", r"\\\1", text)
