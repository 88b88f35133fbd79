"""Where a detail of an entry begins and ends: its words and those of its clause that nothing else holds. No I/O."""

from collections.abc import Iterable

from docgemma.text.durations import MARKS, Place
from docgemma.text.words import clinical, listed, plain

FEW = 4  # words that a detail takes in
EDGES = " ,;:.-/"


def masked(text: str, places: Iterable[Place]) -> str:
    """The text with an end of line for each character of what something else holds."""
    for start, end in places:
        text = text[:start] + "\n" * (end - start) + text[end:]
    return text


def widened(text: str, place: Place, behind: bool = False) -> Place:
    """A detail with the few words of its clause before it, "w food", "weight up 7 lb", or with those behind it."""
    start, end = place
    ends = [at for at, char in enumerate(text) if char in "\n()" or (char in MARKS and text[at + 1 : at + 2].isspace())]
    floor = max([0, *(at + 1 for at in ends if at < start)])
    words = (
        text[end : min([len(text), *(at for at in ends if at >= end)])].split() if behind else text[floor:start].split()
    )
    linking, empty = listed("request_words", "linking"), fillers()
    if len(words) > FEW or (behind and listed("request_words", "opening") & set(words)):
        words = [] if behind or words[-1].casefold() not in linking else words[-1:]
    while words and plain(words[-1 if behind else 0]) in (empty | linking if behind else empty - linking):
        words.pop(-1 if behind else 0)
    if not words:
        return place
    return (
        (start, text.index(words[-1], end) + len(words[-1])) if behind else (text.rindex(words[0], floor, start), end)
    )


def fillers() -> frozenset[str]:
    """Words that say nothing of an entry: courtesy, commands, pronouns."""
    kinds = ("stop", "persons", "answer", "commands", "ordering", "opening", "fillers")
    return listed("request_words", *kinds)


def unmarked(text: str, edges: str) -> str:
    """Without marks and blanks at its edges, but with the point of ".5 mg"."""
    kept = text.strip(edges)
    return f".{kept}" if kept[:1].isdigit() and text[: text.find(kept)].endswith(".") else kept


def quoted(text: str, at: int) -> str:
    """What stands between quotation marks around a place, word for word; "" where nothing does."""
    for opening, closing in clinical("request_words")["quotes"]:
        starts = [place for place in range(at + 1) if text[place] == opening and not text[place - 1 : place].isalnum()]
        ends = [
            place for place in range(at, len(text)) if text[place] == closing and not text[place + 1 :][:1].isalnum()
        ]
        if starts and ends:
            return text[starts[-1] + 1 : ends[-1]].strip()
    return ""
