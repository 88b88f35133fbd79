"""Documents as sentences with their place, and sentences as words with offsets. Word lists: `data/rcm`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache, partial
from typing import Any

from docgemma.paths import data_yaml
from docgemma.rcm.records import Document, Page
from docgemma.rcm.tables import rows
from docgemma.text.births import Birth, read_births
from docgemma.text.characters import fold

UNTITLED = "(no heading)"  # the section of what stands under no heading
BULLETS = "•-*–—▪●◦·"
SHORT = frozenset(
    "dr mr mrs ms prof st vs approx ca pt dx hx rx tx no fig i.e e.g u.s inc resp wt ht".split()
)  # no end
WRAPPED = 0.6  # of the longest line of its page: a shorter line was ended by its writer
GLUED = "+%°<>≥≤"  # marks that are words
MARGIN, HEADING = 12, 20  # words of a heading; of a line at the head of a document, where dates have three
HEAD = 600  # characters of a document that say whose it is, of which visit, for which payer


@dataclass(frozen=True)
class Word:
    """A word in lower case, its place in the sentence, and the marks between it and the word before it."""

    text: str
    start: int
    end: int
    mark: str = ""
    capital: bool = False


@dataclass(frozen=True)
class Sentence:
    """A sentence as it stands in a document. `day`: ISO date of the visit that it is of, "" where nothing tells."""

    text: str
    document: str
    page: int
    section: str
    start: int
    end: int
    day: str = ""
    words: tuple[Word, ...] = field(default=(), compare=False, repr=False)
    read: str = field(default="", compare=False, repr=False)  # the words are of it: a row of a table with its titles


@lru_cache(maxsize=12)
def lists(name: str) -> dict[str, Any]:
    """One file of word lists of `data/rcm`.

    Raises:
        ConfigError: it is missing or is no YAML.
    """
    return data_yaml("rcm", f"{name}.yaml")


@lru_cache(maxsize=20_000)
def words_of(text: str) -> tuple[Word, ...]:
    """The words of a text: "12wks" is "12", "wks"; "wasn't" is "was", "not"; "41.3", "+" and "%" are words."""
    found: list[Word] = []
    at, last = 0, 0
    while at < len(text):
        end = at
        while end < len(text) and (text[end].isalnum() or _inside(text, end)):
            end += 1
        if end == at and text[at] in GLUED:
            end = at + 1
        for start, stop in _parts(text, at, end):
            word = fold(text[start:stop]).replace("’", "'").replace(",", "")
            stem = "can" if word == "cannot" else word.removesuffix("n't") if word.endswith("n't") else ""
            for piece in [{"ca": "can", "wo": "will"}.get(stem, stem), "not"] if stem else [word]:
                mark, capital = text[last:start], text[start].isupper()
                if found and mark == "/" and (one := lists("negation")["written"].get(f"{found[-1].text} {piece}")):
                    start, mark, capital, piece = found[-1].start, found[-1].mark, False, one  # "w/o"
                    found.pop()
                found.append(Word(piece, start, stop, mark, capital))
                last = stop
        at = max(end, at + 1)
    return tuple(_patient(found, at, text) for at in range(len(found)))


def _patient(words: Sequence[Word], at: int, text: str) -> Word:
    """A word, "Pt denies" and "Pt. has" read as the patient, "PT helped" and "tried pt" as physical therapy."""
    word, following = words[at], words[at + 1].text if at + 1 < len(words) else ""
    if word.text != "pt":
        return word
    opens = at == 0 or not word.mark.isspace()
    shouted = text[word.start : word.end].isupper()
    told = following in lists("negation")["patient_verbs"] or (
        opens and not shouted and following.isalpha() and following != "x"
    )
    return replace(word, text="patient") if told else word


def day_of(text: str, today: date, births: Collection[str] = ()) -> str:
    """The latest date in a text but `births`, ISO, month first where there are two readings; "" where there is none."""
    days = [one.days[-1] for one in _dates(text, today) if one.kind == "date" and one.days[-1] not in births]
    return max((day for day in days if len(day) == len("2026-01-01") and day <= today.isoformat()), default="")


def _dates(text: str, today: date) -> list[Birth]:
    """The dates of a text, those to come too: 11/12/2026 may be the eleventh of December."""
    return read_births(text, today.replace(year=today.year + 5, day=1))


def sentences_of(documents: Sequence[Document], today: date | None = None) -> list[Sentence]:
    """The sentences of all readable pages, in order; lines that were only wrapped are one sentence."""
    day = today or date.today()
    births = {
        birth for document in documents for page in document["pages"] for one in _dates(page["text"], day)
        if one.kind == "stated" for birth in one.days
    }  # fmt: skip
    return [sentence for document in documents for sentence in _sentences(document, day, births)]


def section_at(document: Document, page: Page, at: int) -> str:
    """The title of the section that a character of a page stands in; one that began on an earlier page goes on."""
    inside = [part["title"] for part in page["sections"] if part["start"] <= at < part["end"]]
    if inside:
        return inside[-1] or UNTITLED
    ahead = next((part["title"] for part in page["sections"] if part["start"] > at), "")
    if ahead and page["text"].startswith(ahead, at):
        return ahead  # a heading is of its own section
    before = [one for one in document["pages"] if one["number"] < page["number"] and one["sections"]]
    first = min((part["start"] for part in page["sections"]), default=len(page["text"]))
    return (before[-1]["sections"][-1]["title"] or UNTITLED) if before and at < first else UNTITLED


def shown(text: str) -> str:
    """A stretch of a page on one line; a word that the line's end cut is joined."""
    at = text.find("-\n")
    if at > 0 and text[at - 1].isalpha() and text[at + 2 : at + 3].islower():
        text = text.replace("-\r\n", "").replace("-\n", "").replace("\u00ad", "")
    return " ".join(text.split())


def spans(text: str, cuts: Sequence[int] = ()) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence of a page's text. `cuts`: where sections begin; no sentence goes on over one."""
    lines, at = [], 0
    for line in text.splitlines(keepends=True):
        lines.append((at, line))
        at += len(line)
    longest = max((len(line.rstrip()) for _, line in lines), default=0)
    start = 0
    for number, (at, line) in enumerate(lines):
        following = lines[number + 1][1].strip() if number + 1 < len(lines) else ""
        ends = {at + end for end in _ends(line.rstrip())}
        for cut in sorted(ends.union(one for one in cuts if at <= one < at + len(line))):
            yield from _kept(text, start, cut)
            start = cut
        if _broken(line.rstrip(), following, longest):
            yield from _kept(text, start, at + len(line))
            start = at + len(line)
    yield from _kept(text, start, len(text))


def _sentences(document: Document, today: date, births: Collection[str]) -> Iterator[Sentence]:
    day = ""
    for page in document["pages"]:
        if page["failed"]:
            continue
        table = rows(page["text"], partial(day_of, today=today)) if "\t" in page["text"] else {}
        cuts = [at for part in page["sections"] for at in (part["start"], part["end"])]
        for start, end in spans(page["text"], cuts):
            text = shown(page["text"][start:end])
            read = _read(page["text"], start, end, table) if "\t" in page["text"][start:end] else text
            section, said = section_at(document, page, start), words_of(read)
            heading = f" {' '.join(word.text for word in said)} "
            first = page["number"] == 1 and start < HEAD  # "Harborview Benefit Trust // Office visit 11/12/2026"
            told = any(
                heading.startswith(f" {cue} ") or ((first or text.isupper()) and f" {cue} " in heading)
                for cue in lists("opposites")["dated"]
            )
            # "11/10/2026   S. Marchetti, PA-C", "Grace Kim   DOB 3/12/1967   11/10/2026"
            kinds = {one.kind: one.start for one in reversed(_dates(text, today))} if first and not day else {}
            led = "date" in kinds and (kinds["date"] == 0 or "stated" in kinds)
            if len(said) <= (HEADING if first else MARGIN) and (told or led):
                day = day_of(text, today, births) or day
            of = day_of(section, today, births) or day
            yield Sentence(text, document["name"], page["number"], section, start, end, of, said, read)


def _read(text: str, start: int, end: int, table: Mapping[int, str]) -> str:
    """A stretch of a page with the rows of tables as they are read."""
    at, lines = text.rfind("\n", 0, start) + 1, list[str]()
    for line in text[at:end].splitlines(keepends=True):
        lines.append(table.get(at) or line[max(start - at, 0) :])
        at += len(line)
    return " ".join(" ".join(lines).split())


def _inside(text: str, at: int) -> bool:
    """Whether a mark is within a word: 41.3, 1,000, patient's."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if text[at] in ".,":
        return before.isdigit() and after.isdigit() and (text[at] == "." or text[at + 1 : at + 4].isdigit())
    return text[at] in "'’" and before.isalpha() and after.isalpha()


def _parts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A word cut behind leading digits ("12wks") and a leading x ("x12"); "l4", "a1c" and "m2" stay whole."""
    if end - start > 1 and text[start] in "xX" and text[start + 1].isdigit():
        yield start, start + 1
        start += 1
    cut = start
    while cut < end and (text[cut].isdigit() or text[cut] in ".,"):
        cut += 1
    if start < cut < end:
        yield start, cut
        start = cut
    if start < end:
        yield start, end


def _ends(line: str) -> Iterator[int]:
    """Where sentences end within a line: after . ? or ! before a blank and no small letter, not after "Dr."."""
    for at, char in enumerate(line[:-1]):
        if char in ".?!" and line[at + 1] in " \t":
            word = (line[:at].split() or [""])[-1].strip("()[]")
            word = word.casefold() if not word.isupper() or len(word) == 1 else word  # "Pt." is short, "of PT." is not
            following = (line[at + 1 :].split() or [""])[0]
            whole = len(word) > 1 or word.isdigit() or following.casefold() in lists("negation")["begins"]
            if not following[:1].islower() and (char != "." or (word not in SHORT and whole)):
                yield at + 1


def _broken(line: str, following: str, longest: int) -> bool:
    """Whether a sentence ends with its line: before a blank line, a bullet, a heading, or where it was not wrapped."""
    if not line.strip() or not following or following[0] in BULLETS or line[-1] in ".:;?!":
        return not line.endswith("-") or not following[:1].islower()
    last = line.split()[-1].casefold()
    if last in lists("negation")["goes_on"] and not set(":?\t") & {*line, *following[:30]}:
        return False
    ended = len(line) < WRAPPED * longest or ":" in (following[:30] + line[:30]) or line.isupper()
    return ended and not following[0].islower()


def _kept(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and (text[start].isspace() or text[start] in BULLETS):
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end
