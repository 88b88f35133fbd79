"""How long a course lasts: "7/7", "x3d" and "for 2/52" in words, and where they stand in an order. No I/O."""

from docgemma.text.numbers import NUMBER_WORDS
from docgemma.text.words import listed, plain

# of "7/7", "2/52", "3/12" (BNF, prescription writing), and of "x3d", "5 days"
UNITS = {"/7": "day", "/52": "week", "/12": "month", "d": "day", "day": "day", "w": "week", "wk": "week",
         "week": "week", "mo": "month", "month": "month"}  # fmt: skip
SOON = 6  # words before "in 2/52" among which what is followed up is looked for
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


def _words(text: str) -> list[Place]:
    """Where each word stands."""
    words, end = list[Place](), 0
    for word in text.split():
        start = text.index(word, end)
        end = start + len(word)
        words.append((start, end))
    return words


def follow_ups(text: str) -> list[Place]:
    """Where it stands what is to be looked at again and when, "repeat u&es in 2/52", "review 6/52": no length."""
    words, found = _words(text), list[Place]()
    said, looking = [plain(text[a:b]) for a, b in words], listed("sig", "following_up")
    for at, word in enumerate(said):
        ends = [b - (text[b - 1] in MARKS) for _, b in words[at + 1 : at + LENGTH]]
        ends = [b for b in ends if duration(f"for {text[words[at + 1][0] : b]}")]
        first = max((i for i in range(at + 1) if i == 0 or text[words[i - 1][1] - 1] in MARKS), default=0)
        begun = [i for i in range(max(first, at - SOON), at + 1) if said[i] in looking]
        if ends and (word == "in" or begun):  # "recheck bp 2/52"
            found.append((words[begun[0] if begun else max(first, at - 1)][0], ends[-1]))
    return found


def timed(text: str) -> str:
    """An instruction with its time in words: "review 6/52" is "review in 6 weeks", "with food 5/7" for 5 days."""
    words, later = text.split(), listed("sig", "following_up", "starting") & {*plain(text).split()}
    for at, word in enumerate(words):
        if at and "/" in word and (told := duration(word)):
            led = words[at - 1] in ("in", "for")
            words[at] = told.removeprefix("for ") if led else told.replace("for ", "in ") if later else told
    return " ".join(words)


def durations(text: str) -> list[Place]:
    """Where the length of a course stands, begun with "x" or "for": "x10 d"; "10 d" alone may be another thing;
    "8/52" is weeks."""
    words, found = _words(text), list[Place]()
    for at, (start, end) in enumerate(words):
        weeks = text[start:end].rstrip(MARKS)
        begun = text[start : start + 4].casefold().startswith(("x", "for "))
        ends = [start + len(text[start:end].rstrip(MARKS)) for _, end in words[at : at + LENGTH]] if begun else []
        found += [(start, end) for end in ends if " for " not in text[start:end] and duration(text[start:end])][-1:]
        found += [(start, start + len(weeks))] if weeks.endswith("/52") and duration(weeks) else []
    return found
