"""How long a course lasts: "7/7", "x3d" and "for 2/52" in words, and where they stand in an order. No I/O."""

from docgemma.text.numbers import NUMBER_WORDS
from docgemma.text.words import plain

# of "7/7", "2/52", "3/12" (BNF, prescription writing), and of "x3d", "5 days"
UNITS = {"/7": "day", "/52": "week", "/12": "month", "d": "day", "day": "day", "w": "week", "wk": "week",
         "week": "week", "mo": "month", "month": "month"}  # fmt: skip
LENGTH = 3  # words of a duration
MARKS = ",;:.?!"
Place = tuple[int, int]


def duration(text: str) -> str | None:
    """ "7/7", "x3d", "5d", "x 10 days", "for 2/52", "for a week", "5/7 for uti" in words; None for no duration."""
    head, why, rest = text.removeprefix("for ").partition(" for ")
    if why and (days := duration(head)):
        return f"{days}; for {rest}"
    words = plain(text).removeprefix("for ").removeprefix("x").strip()
    rest = words.lstrip("0123456789")
    count, unit = words[: len(words) - len(rest)], UNITS.get(rest.strip(" -").removesuffix("s"))
    first, _, after = words.partition(" ")
    if not unit and (spelt := NUMBER_WORDS.get(first) or (first in ("a", "one") and text.startswith("for "))):
        count, unit = str(int(spelt)), UNITS.get(after.removesuffix("s"))
    return f"for {int(count)} {unit}{'' if int(count) == 1 else 's'}" if count and unit else None


def durations(text: str) -> list[Place]:
    """Where the length of a course stands, begun with "x" or "for": "x10 d"; "10 d" alone may be another thing;
    "8/52" is weeks."""
    words, found, end = list[Place](), list[Place](), 0
    for word in text.split():
        start = text.index(word, end)
        end = start + len(word)
        words.append((start, end))
    for at, (start, end) in enumerate(words):
        weeks = text[start:end].rstrip(MARKS)
        begun = text[start : start + 4].casefold().startswith(("x", "for "))
        ends = [start + len(text[start:end].rstrip(MARKS)) for _, end in words[at : at + LENGTH]] if begun else []
        found += [(start, end) for end in ends if " for " not in text[start:end] and duration(text[start:end])][-1:]
        found += [(start, start + len(weeks))] if weeks.endswith("/52") and duration(weeks) else []
    return found
