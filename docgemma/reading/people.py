"""Whom a message is about: linked names and ids, and what else settles them: a surname, a birth date alone."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from docgemma.ehr.base import RecordStore
from docgemma.reading.patients import PatientLink, link_patients
from docgemma.reading.reader import Span
from docgemma.state import PatientRef
from docgemma.text.births import read_births
from docgemma.text.words import plain

Ordinary = Callable[[str], bool]


def read_people(
    message: str,
    names: Sequence[Span],
    ids: Sequence[Span],
    store: RecordStore,
    ordinary: Ordinary,
    beside: Sequence[tuple[int, int]],
) -> list[PatientLink]:
    """The patients of a message, each once; a name that nobody has stays one without candidates.

    Args:
        names, ids: as the reader marked them.
        ordinary: is this folded word an English word or a drug, and no surname by itself?
        beside: places that name nobody: a note's text, a query.
    """
    places = [[(span.start, span.end) for span in spans] for spans in (names, ids)]
    links = []
    for found in link_patients(message, store, places[0], places[1], ordinary):
        if any(start <= found.start < end for start, end in beside):
            continue
        for link in _split(found, store, ordinary):
            link = _by_surname(link, store)
            if link.candidates or link.kind == "id" or not all(map(ordinary, plain(link.text).split())):
                links.append(link)  # "k", "ooh" or "drain" is nobody
    return links


def born_on(message: str, store: RecordStore) -> list[PatientLink]:
    """Who was born on a day that is given, where nobody is named."""
    for birth in read_births(message):
        days = [day for day in birth.days if len(day) == 10]
        people = store.born(days) if days and birth.kind in ("stated", "date") else []
        if people:
            return [PatientLink(birth.start, birth.end, people[0].name, "name", tuple(people), True, True)]
    return []


def as_patient(link: PatientLink) -> PatientRef:
    """The one candidate of a link, and what to search for: "" where an id was given."""
    match = link.candidates[0]
    born = f", born {match.birth_date}" if match.birth_date and link.by_birth else ""
    name = match.name if not link.exact or link.text[:1].isdigit() else link.text
    search = "" if link.kind == "id" else f"{name}{born}"
    return PatientRef(
        id=match.id, name=match.name, label=match.label, sex=match.sex, said=link.text, search=search, exact=link.exact
    )


def as_unclear(link: PatientLink, message: str) -> str:
    """A name that nobody, or more than one, has; with the birth date that nobody of that name has."""
    days = [day for birth in read_births(message) for day in birth.days if len(day) == 10]
    return f"{link.text}, born {days[0]}" if days and link.kind == "name" and not link.candidates else link.text


def _split(link: PatientLink, store: RecordStore, ordinary: Ordinary) -> list[PatientLink]:
    """A name that nobody has, as the patients whose surnames are its parts: "goldstein, nowak", "haddad ta"."""
    if link.candidates or link.kind != "name" or link.by_birth:
        return [link]
    parts = [part for part in plain(link.text).replace("/", " ").removesuffix("'s").split() if len(part) > 2]
    people = {part: store.named([[part]])[0] for part in parts}
    known = [part for part in parts if people[part]]
    rest = [part for part in parts if not people[part]]
    several = "," in link.text and (len(known) > 1 or bool(rest) or len(parts) == 1)
    if not (several or (len(known) == 1 and "," not in link.text)) or not all(map(ordinary, rest)):
        return [link]
    return [PatientLink(link.start, link.end, part, "name", tuple(people[part]), True) for part in known] or [link]


def _by_surname(link: PatientLink, store: RecordStore) -> PatientLink:
    """A name that nobody has, as the one patient of that surname whose given name begins alike: "Len Abernathy"."""
    words = plain(link.text).removesuffix("'s").split()
    if link.candidates or link.kind != "name" or link.by_birth or len(words) < 2:
        return link
    people = store.named([[words[-1]]])[0]
    alike = [match for match in people if any(part[:2] == words[0][:2] for part in plain(match.name).split()[:-1])]
    return replace(link, candidates=tuple(alike), exact=False) if len(alike) == 1 else link
