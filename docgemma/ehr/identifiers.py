"""What counts as the same identifier (a record's id, an MRN, any other of the Patient resource), and what may be one in
a text."""

import re
from collections.abc import Collection, Iterable, Sequence

from docgemma.ehr.base import PatientMatch, RecordStore, Resource
from docgemma.ehr.fhir import identifier_values, patient_match

LABELS = ("mrn", "patient", "pt", "id", "no", "nr", "chart", "record")  # may stand before an identifier, unspaced too
CODE = re.compile(r"\w+(?:[-.]\w+)*")
CALLS = frozenset({*LABELS, "number", "case", "file"})  # "patient 555" is no dose of 555 mg
UNITS = frozenset(
    """mg mcg g kg ml l cm units unit iu mmol meq mmhg bpm x h hour hours day days week weeks month months year years
    tablet tablets tabs puffs times patients""".split()
)
Span = tuple[int, int]
UUID = 36  # characters
DIGITS_ALONE = 5  # so many digits are enough without the letters before them: "S6534835" is also "6534835"


def identifier_key(value: str) -> str:
    """Letters and digits alone, without case: "ABC-123" and "abc 123" are one."""
    return "".join(char for char in value.casefold() if char.isalnum())


def patient_keys(patient: Resource) -> set[str]:
    """Every key under which this patient is found: id and identifiers, also without their leading letters; of a UUID
    its first group, by which people call it."""
    first = patient["id"].partition("-")[0].casefold()
    keys = {identifier_key(value) for value in (patient["id"], *identifier_values(patient))}
    bare = {_without_letters(key) for key in keys}
    keys |= {key for key in bare if len(key) >= DIGITS_ALONE and key.isdigit()}
    keys |= {first} if len(patient["id"]) == UUID and not first.isdigit() else set()
    return keys - {""}


def without_label(value: str) -> str:
    """ "MRN0048213" and "MRN: 0048213" as "0048213"; anything else as it is."""
    rest = _without_letters(value.casefold())
    label = identifier_key(value)[: len(value) - len(rest)].rstrip("0123456789")
    return value[len(value) - len(rest) :] if rest and label in LABELS else value


def look_up(text: str, places: Iterable[Span], store: RecordStore) -> dict[Span, list[PatientMatch]]:
    """Whose id or identifier stands at each of these places, with or without a label; [] where it is nobody's."""
    spelt = {span: (text[slice(*span)], without_label(text[slice(*span)])) for span in places}
    known = store.by_identifier(list(dict.fromkeys(value for values in spelt.values() for value in values)))
    return {span: next((known[value] for value in values if value in known), []) for span, values in spelt.items()}


def identified(values: Sequence[str], patients: Iterable[Resource]) -> dict[str, list[PatientMatch]]:
    """For each value the patient whose id is spelt this way, or else all of these who have this identifier."""
    people = [(patient_keys(patient), patient_match(patient)) for patient in patients]
    found: dict[str, list[PatientMatch]] = {}
    for value in values:
        having = {match.id: match for keys, match in people if identifier_key(value) in keys}.values()
        exact = [match for match in having if match.id.casefold() == value.strip().casefold()]
        if matches := exact or sorted(having, key=lambda match: (match.name, match.birth_date, match.id)):
            found[value] = matches
    return found


def overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def read_codes(text: str, marked: Sequence[Span], dates: Sequence[Span]) -> list[Span]:
    """Where identifiers may stand: anything with a digit, a short number only where it is called one or is marked."""
    pieces = [piece.span() for piece in CODE.finditer(text) if any(map(str.isdigit, piece.group()))]
    outside = [span for span in pieces if not any(date[0] <= span[0] and span[1] <= date[1] for date in dates)]
    plain = [span for span in outside if not text[slice(*span)].isdigit() or span[1] - span[0] > DIGITS_ALONE]
    called = [span for span in outside if span not in plain and _called(text, span)]
    return [*(span for span in pieces if any(overlap(span, mark) for mark in marked)), *plain, *called]


def trimmed(text: str, marked: Span, beside: Collection[str]) -> Span | None:
    """A marked identifier from its first to its last whole piece, without the words that a mark takes with it."""
    inside = [piece.span() for piece in CODE.finditer(text) if overlap(piece.span(), marked)]
    kept = [span for span in inside if text[slice(*span)].casefold() not in {"s", *beside}]
    return (kept[0][0], kept[-1][1]) if kept else None


def _called(text: str, span: Span) -> bool:
    """Whether a number is called a patient's: "patient 555", "labs for 402", "#402", or nothing but the number."""
    before, after = text[: span[0]].rstrip(" :.#"), text[span[1] :].casefold()
    word = before.casefold().rpartition(" ")[2]
    called = word in CALLS or "#" in text[len(before) : span[0]] or (word == "for" and span[1] - span[0] > 2)
    unit = after.startswith(("%", "/")) or not UNITS.isdisjoint(after.replace("/", " ").strip(" .,;?!").split()[:1])
    return text.strip() == text[slice(*span)] or (called and not unit)


def _without_letters(text: str) -> str:
    """From the first digit on."""
    return text[next((place for place, char in enumerate(text) if char.isdigit()), len(text)) :]
