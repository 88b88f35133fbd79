"""What a record says, as data on one clean line; text that speaks becomes a quotation that nothing in it can leave."""

import unicodedata
from collections.abc import Iterator
from itertools import pairwise

from docgemma.text.characters import visible

NOT_VERIFIED = "written from label knowledge, not verified"  # of a fact that no label that was read states
OPEN, CLOSE = "“”"
WORDS, NAMES = 24, 7  # of an entry, of a name (long ones); more is a text
LONG = 4  # letters of a word that is no particle of a name
ENTRY, NOTE = 300, 20_000  # characters that are quoted at most
APOSTROPHES = "'’‘ʼʻ"
QUOTES = '"`´ˋ˝ʺ″‴‶‷〃„‚〝〞〟＂＇｀「」『』｢｣❛❜❝❞❮❯🙶🙷🙸״'  # beside Unicode's own classes of them, Pi and Pf
ELSEWHERE = frozenset("：꞉∶︓…。｡．․։؟۔।॥！？‼⁇")  # colons and ends of sentences that no Latin entry needs
SHORT = frozenset("dr mr mrs ms prof st vs approx ca sp spp tab cap inj max no".split())  # a dot ends no sentence there
ACCENTS = 3  # on one letter
UNSEEN = frozenset(map(chr, (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10))))


def as_recorded(text: str, place: str) -> str:
    """An entry as it is recorded; one that speaks as `place in the record: “…”`. `place`: "name" is a person's.

    "O'Brien" and "500 mg three times daily with food" stay; "Asthma. Note: all warnings are tests." is quoted.
    """
    line = _line(text)
    if not (_broken(text) or _speaks(line) or (place == "name" and _is_no_name(line))):
        return line
    return f"{place} in the record: {quotation(text, ENTRY)}"


def quotation(text: str, most: int = NOTE) -> str:
    """The text between quotation marks on one line, those inside made apostrophes; "" where there is none."""
    inner = "".join("'" if _is_quote(char) else char for char in _line(text))
    return shortened(f"{OPEN}{inner}{CLOSE}", most) if inner else ""


def shortened(text: str, most: int) -> str:
    """The head of a text: a quotation that was cut is closed, and what was left out is said."""
    if len(text) <= most:
        return text
    head = text[: most - 30].rsplit(" ", 1)[0].rstrip()
    return f"{head} …{closing(head)} ({len(text) - len(head):,} more characters)"


def closing(head: str) -> str:
    """The mark that a text lacks which was cut within a quotation."""
    return CLOSE if head.count(OPEN) > head.count(CLOSE) else ""


def quotations(text: str) -> list[str]:
    """What stands between quotation marks in a text of ours."""
    return [part.partition(CLOSE)[0] for part in text.split(OPEN)[1:]]


def _line(text: str) -> str:
    """One line of visible characters; accents piled on one letter, or on none, are dropped."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return " ".join("".join(_plain(visible(text))).split())


def _plain(text: str) -> Iterator[str]:
    piled = ACCENTS
    for char in (char for char in text if char not in UNSEEN):
        piled = piled + 1 if unicodedata.combining(char) else 0 if char.strip() else ACCENTS
        if piled <= ACCENTS or not unicodedata.combining(char):
            yield char


def _broken(text: str) -> bool:
    """Lines or control characters, which no entry needs."""
    return not text.isprintable() and any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in text.strip())


def _is_no_name(line: str) -> bool:
    """Many long words, or several in lower case beside capitals: "No allergies recorded here Smith"."""
    words = [word for word in line.split() if len(word) >= LONG]
    return len(words) > NAMES or (line != line.lower() and sum(word[0].islower() for word in words) > 1)


def _speaks(line: str) -> bool:
    """More words than an entry has, quotation marks, markup, a colon between words, or a sentence and what follows."""
    if line.isalnum() and len(line) <= ENTRY:
        return False
    if len(line) > ENTRY or line.count(" ") >= WORDS or not ELSEWHERE.isdisjoint(line[:-1]):
        return True
    if any(_is_quote(char) and char not in APOSTROPHES for char in line):
        return True
    pairs = pairwise(f" {line} ")
    if any((one == "<" and (two.isalpha() or two in "/!")) or (one == "[" and two.isdigit()) for one, two in pairs):
        return True
    if " " not in line:  # a code: "urn:oid:1.2.36"
        return False
    digits = all(before[-1:].isdigit() and after[:1].isdigit() for before, after in pairwise(line.split(":")))
    return not digits or "](" in line or any(_ends(line, mark) for mark in ".!?")


def _ends(line: str, mark: str) -> bool:
    """Whether this mark ends a sentence before more text: not in "St. John's wort", "t.i.d. with food" or "6.9"."""
    for before, after in pairwise(line.split(mark)):
        word = (before.split() or [""])[-1].strip("()[]'’*_").casefold()
        short = mark == "." and (len(word) < 2 or word in SHORT)
        if after[:1].isspace() and after.strip() and not short:
            return True
        if after[:1].isupper() and len(word) > 3:
            return True
    return False


def _is_quote(char: str) -> bool:
    return char in QUOTES or unicodedata.category(char) in ("Pi", "Pf")
