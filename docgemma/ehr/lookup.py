"""Who is meant by a name, an id or MRN, and a birth date, in any combination: the argument of a patient search."""

from collections.abc import Iterable

from docgemma.ehr.base import NAMED, PatientMatch, RecordStore
from docgemma.ehr.identifiers import LABELS, Span, look_up, overlap, read_codes
from docgemma.ehr.names import closeness, index_tokens, query_tokens
from docgemma.text.births import fitting, read_births


def find_people(text: str, store: RecordStore) -> list[PatientMatch]:
    """Patients with this id, MRN or name; where several are given, those whom all of them fit. [] if nobody.

    Raises:
        StoreError: the store cannot be reached or read.
    """
    births = read_births(text)
    dates = [(birth.start, birth.end) for birth in births if birth.kind != "year"]
    codes = [
        span
        for span in read_codes(text, [(0, len(text))], [])
        if not any(date[0] <= span[0] and span[1] <= date[1] for date in dates)
    ]
    known = {span: people for span, people in look_up(text, codes, store).items() if people}
    births = [birth for birth in births if not any(overlap((birth.start, birth.end), span) for span in known)]
    name = _without(text, [*known, *((birth.start, birth.end) for birth in births)])
    if known:
        said = [word for word in query_tokens(name) if len(word) > 1 and word not in LABELS]
        everybody = {match.id: match for matches in known.values() for match in matches}.values()
        # an id beside another patient's name is nobody's
        people = [one for one in everybody if not said or closeness(said, index_tokens(one.name)) is not None]
    elif births and (tokens := query_tokens(name)):
        # as recorded and born then, even if hundreds have the name; else as the store guesses
        days = [day for birth in births for day in birth.days]
        people = store.named([tokens], days)[0] or store.search_patients(name, limit=NAMED)
    else:
        people = store.search_patients(text)
    for birth in births:
        fit = fitting(people, birth.days)
        people = fit if fit or birth.kind != "age" else people
    return people


def _without(text: str, places: Iterable[Span]) -> str:
    for start, end in sorted(places, reverse=True):
        text = f"{text[:start]} {text[end:]}"
    return " ".join(text.split()).strip(" ,;:()[]")
