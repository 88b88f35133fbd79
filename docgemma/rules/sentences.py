"""Splitting an answer into sentences without being fooled by "0.5 mg", "e.g." or "Dr.". Nothing is lost: the pieces
and what stands between them give the text again."""

import re

ABBREVIATIONS = frozenset(
    {
        "al", "approx", "b.i.d", "ca", "cf", "dept", "dr", "e.g", "ed", "est", "etc", "fig", "i.e", "i.v", "inc", "jr",
        "max", "min",
        "mr", "mrs", "ms", "no", "nr", "p.o", "prof", "q.d", "ref", "sr", "st", "t.i.d", "u.k", "u.s", "vs",
    }
)  # fmt: skip
BREAK = re.compile(r"\s*\n+\s*|(?<=[.!?…])[\"'”’)\]]?\s+(?=\S)")
LAST_WORD = re.compile(r"([\w.]+)[.!?…][\"'”’)\]]?$")


def split(text: str) -> list[tuple[str, str]]:
    """Sentences (or lines) with the blanks that follow each: "".join(a + b) is the text without outer blanks."""
    text = text.strip()
    pieces, start = [], 0
    for match in BREAK.finditer(text):
        head = text[start : match.start()]
        closing = match.group()[: len(match.group()) - len(match.group().lstrip("\"'”’)]"))]
        if "\n" not in match.group() and not _ends(head, text[match.end()]):
            continue
        pieces.append((head + closing, match.group()[len(closing) :]))
        start = match.end()
    return [*pieces, (text[start:], "")] if text[start:] else pieces


def _ends(head: str, following: str) -> bool:
    """Whether a full stop here ends a sentence, given the character that follows it."""
    if head.endswith(("!", "?")):
        return True
    if following.islower():
        return False
    word = LAST_WORD.search(head[-24:])
    last = word.group(1).lower() if word else ""
    if last in ABBREVIATIONS or (len(last) == 1 and last.isalpha()):
        return False
    return not (last.isdigit() and head.strip(" .").isdigit())  # a list's number
