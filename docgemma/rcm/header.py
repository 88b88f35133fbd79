"""Whom a document speaks of, from its labelled header lines ("Patient: ...  DOB: ..."); prose is never asked."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from docgemma.paths import data_yaml
from docgemma.rcm.records import Document, Identity
from docgemma.text.births import read_births
from docgemma.text.characters import fold

MARKS = str.maketrans(",.", "  ")  # of a name
APART = "|/·•;"  # between the fields of a line without labels
LONGEST = 3  # words of a label
NAME_WORDS = 12  # the longest name of the record store has eleven


@lru_cache(maxsize=1)
def words() -> dict[str, Any]:
    """The labels and section titles of data/rcm/header.yaml; `labels` maps each label to its field ("" for others)."""
    read = data_yaml("rcm", "header.yaml")
    labels = dict.fromkeys(map(fold, read["other"]), "")
    labels |= {fold(label): field for field, of_field in read["fields"].items() for label in of_field}
    return {**{key: frozenset(map(fold, of_key)) for key, of_key in read.items() if key != "fields"}, "labels": labels}


def is_label(text: str) -> bool:
    """Whether this is the label of a header field, "Member ID", and so no title of a section; "Plan" is a title."""
    return " ".join(fold(text).split()) in words()["labels"].keys() - words()["sections"]


def identities_of(document: Document) -> list[Identity]:
    """Read whom the document is about from its header lines, on every page.

    Returns:
        Each patient named, with the first birth date and payer that stand with that name; "" where nothing is said,
        of the first at least. A document of several must not be used before a person has said whose it is.
    """
    found: list[dict[str, str]] = []
    now: dict[str, str] = {}
    for page in document["pages"]:
        lines = page["text"].splitlines()
        for above, line in zip(["", *lines], lines, strict=False):
            for field, value in _fields(line, above):
                now = _placed(found, now, field, value)
    people = [one for one in found if one.get("name") or one.get("birth_date")]
    return [
        Identity(name=one.get("name", ""), birth_date=one.get("birth_date", ""), payer=one.get("payer", ""))
        for one in people or found[:1] or [{}]
    ]


def _placed(found: list[dict[str, str]], now: dict[str, str], field: str, value: str) -> dict[str, str]:
    """Put a field to the patient `now` spoken of, or to another if it must be another's; returns whose it is."""
    same = [one for one in found if field == "name" and ("name" not in one or same_name(one["name"], value))]
    if field == "birth_date" and now.get(field, value) != value:  # of one name, and another patient
        same = [one for one in found if one.get(field) == value and one.get("name") == now.get("name")]
        now = same[0] if same else {"name": now["name"]} if "name" in now else {}
    elif field == "name":
        now = now if now in same else same[0] if same else {}
    if not any(one is now for one in found):
        found.append(now)
    now.setdefault(field, value)
    return now


def same_name(one: str, other: str) -> bool:
    """Whether two names are one, whatever the middle names, the order and the initials: "Gonzalez, M." too."""
    left, right = (set(fold(name).translate(MARKS).replace("'s", "").split()) for name in (one, other))
    few, many = sorted((left, right), key=len)
    rest = many - few
    return bool(few) and all(
        word in many or any(part[0] == word[0] and 1 in (len(part), len(word)) for part in rest) for word in few
    )


def _fields(line: str, above: str) -> Iterator[tuple[str, str]]:
    """The labelled values of a line that begins with a label; the cells of a table row are read as a line."""
    cells = [cell.strip() for cell in line.split("\t")]
    joined = "  ".join(f"{cell}:" if len(cells) > 1 and is_label(cell) else cell for cell in cells)
    pieces = joined.replace("#:", " #:").split(":")
    label, rest = words()["labels"].get(" ".join(fold(pieces[0]).split())), pieces[1:]
    if label is None or not rest or not is_label(pieces[0]):
        yield from _running_head(line, above)
        return
    value, read = "", list[tuple[str, str]]()
    for at, piece in enumerate(rest):
        here = piece.split()
        tail = next((size for size in range(min(LONGEST, len(here)), 0, -1) if _label(here[-size:]) is not None), 0)
        if at == len(rest) - 1 or not tail:
            value += piece if at == len(rest) - 1 else f"{piece}:"
            continue
        read.append((label, value + " ".join(here[:-tail])))
        label, value = _label(here[-tail:]) or "", ""
    for field, text in [*read, (label, value)]:
        yield from _values(field, text.strip(" |;,·•-–_"), [one for one, _ in read] + [label])


def _running_head(line: str, above: str) -> Iterator[tuple[str, str]]:
    """The patient of a line without labels but for the birth date: "Wilson, James   DOB 07/30/1985   Member ID 7".

    Where the line begins with the birth date, the name is that of the line above: "WILSON, JAMES".
    """
    births = [birth for birth in read_births(line) if birth.kind == "stated"]
    head = line[: births[0].start] if births else ""
    if births and not head.strip() and not fold(line.strip()).startswith("born"):
        if "," in above and len((name := _name(above)).split()) > 1:
            yield "name", name
        if day := _day(line[births[0].start : births[0].end]):
            yield "birth_date", day
        return
    apart = head.rstrip().endswith(tuple(APART)) or head.endswith("  ")
    apart |= bool(births) and ":" in line[births[0].end :]  # another label behind: a header line, no prose
    if births and (apart or not fold(line[births[0].start :]).startswith("born")):  # prose: "his mother, born 1931"
        name, day = _name(head.rstrip(APART + " ")), _day(line[births[0].start : births[0].end])
        if day and len(name.split()) > 1:
            yield from (("name", name), ("birth_date", day))


def _label(pieces: list[str]) -> str | None:
    found: str | None = words()["labels"].get(fold(" ".join(pieces)).lstrip("|;,·•("))
    return found


def _values(field: str, text: str, beside: list[str]) -> Iterator[tuple[str, str]]:
    """What one labelled value says, in the field's form; a birth date may stand behind the name without a label."""
    if field == "birth_date":
        if day := _day(f"born {text}"):
            yield field, day
    elif field == "name":
        births = [birth for birth in read_births(text) if birth.kind in ("stated", "date")]
        day = _day(f"born {text[births[0].start :].split('born')[-1]}") if births else ""
        said = text[: births[0].start] if births else text
        # "Re:" may as well be followed by a subject, whose words no name has, without a birth date
        subject = said == text and "birth_date" not in beside and {"authorization", "request"} & {*fold(text).split()}
        column = fold(said.partition(" ")[0]) in words()["columns"]  # "Name | Dose | Comment" heads a table
        if (name := _name(said)) and not subject and not column:
            yield field, name
            if day:
                yield "birth_date", day
    elif field and text:
        value = text.split("(")[0].split(",")[0].split(";")[0]
        if not _staff(value):  # "To: Dr. Strand"
            yield field, value.strip(" ,;|")


def _day(text: str) -> str:
    """The ISO date, month before day as US documents write it; "" where the century is not clear."""
    days = [day for birth in read_births(text) if birth.kind == "stated" for day in birth.days if len(day) == 10]
    return days[-1] if len({day[:4] for day in days}) == 1 else ""


def _name(text: str) -> str:
    """The name in the order first, last; "" where the text is no name of a patient."""
    text = text.split("(")[0].split("|")[0].split("  ")[0].strip(" ,;-–")
    if _staff(text):
        return ""
    family, comma, given = (part.strip() for part in text.partition(","))
    if comma and given and fold(given) not in words()["generations"]:
        text = f"{given} {family}" if not any(char.isdigit() for char in given) else family
    said = text.replace(",", " ").split()
    if said and fold(said[0]).rstrip(".") in words()["titles"]:
        said = said[1:]
    if not 0 < len(said) <= NAME_WORDS:
        return ""
    proper = [word for word in said if fold(word) not in words()["particles"]]
    fits = proper and all(word[0].isupper() and not any(char.isdigit() for char in word) for word in proper)
    return " ".join(said) if fits else ""


def _staff(text: str) -> bool:
    """Whether it names a clinician: "Dr. Strand", "J. Marchetti, DPT"."""
    first, *rest = [word.strip(".,") for word in text.split()] or [""]
    degrees = [word for word in rest if word != word.capitalize()]  # "Do" and "Pa" are names, "DO" is a degree
    return fold(first) in words()["doctors"] or any(fold(word) in words()["staff"] for word in degrees)
