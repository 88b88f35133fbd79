"""Who is meant by a name, an id or MRN, and a birth date, in any combination: the argument of a patient search."""

from docgemma.ehr.base import NAMED, PatientMatch, RecordStore
from docgemma.ehr.births import Birth, fitting, read_births, without
from docgemma.ehr.identifiers import LABELS, overlap, read_codes, without_label
from docgemma.ehr.names import closeness, index_tokens, query_tokens


def find_people(text: str, store: RecordStore) -> list[PatientMatch]:
    """Patients with this id, MRN or name; where several are given, those whom all of them fit. [] if nobody.

    Raises:
        StoreError: the store cannot be reached or read.
    """
    births = read_births(text)
    dated = [(birth.start, birth.end) for birth in births if birth.kind != "year"]
    spans = [
        span
        for span in read_codes(text, [(0, len(text))], [])
        if not any(start <= span[0] and span[1] <= end for start, end in dated)
    ]
    values = {span: (text[slice(*span)], without_label(text[slice(*span)])) for span in spans}
    known = store.by_identifier([value for pair in values.values() for value in pair]) if values else {}
    codes = [span for span, pair in values.items() if any(value in known for value in pair)]
    births = [birth for birth in births if not any(overlap((birth.start, birth.end), span) for span in codes)]
    if codes:
        name = _without_codes(without(text, births), [text[slice(*span)] for span in codes])
        matches = {match.id: match for found in known.values() for match in found if _fits(name, match)}
        return _born(list(matches.values()), births)
    if not births:
        return store.search_patients(text)
    return _named(without(text, births), births, store)


def _named(name: str, births: list[Birth], store: RecordStore) -> list[PatientMatch]:
    """As recorded and born then, even if hundreds have the name; else as the store guesses."""
    days = [day for birth in births for day in birth.days]
    tokens = query_tokens(name)
    found = store.named([tokens], days)[0] if tokens else []
    return _born(found or store.search_patients(name, limit=NAMED), births)


def _born(matches: list[PatientMatch], births: list[Birth]) -> list[PatientMatch]:
    for birth in births:
        fit = fitting(matches, birth.days)
        matches = fit if fit or birth.kind != "age" else matches
    return matches


def _without_codes(text: str, codes: list[str]) -> list[str]:
    for code in codes:
        text = text.replace(code, " ")
    return [word for word in query_tokens(text) if len(word) > 1 and word not in LABELS]


def _fits(name: list[str], match: PatientMatch) -> bool:
    """An id beside another patient's name is nobody's."""
    return not name or closeness(name, index_tokens(match.name)) is not None
