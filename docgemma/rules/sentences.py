"""Split an answer into sentences without being fooled by "0.5 mg", "e.g." or "Dr.", and take some of them out."""

import re
from collections.abc import Callable

from docgemma.text.words import plain

ABBREVIATIONS = frozenset(
    "al approx b.i.d ca cf dept dr e.g ed est etc fig i.e i.v inc jr max min mr mrs ms no nr p.o prof q.d ref sr st "
    "t.i.d u.k u.s vs".split()
)
BREAK = re.compile(r"\s*\n+\s*|(?<=[.!?…])[\"'”’)\]]?\s+(?=\S)")
CLOSING = "\"'”’)]"
MIN_WORDS = 4  # fewer words may stand in an answer and in the instructions by chance


def split(text: str) -> list[tuple[str, str]]:
    """Sentences (or lines) with the blanks that follow each: "".join(a + b) is the text without outer blanks."""
    text = text.strip()
    pieces, start = [], 0
    for match in BREAK.finditer(text):
        head, gap = text[start : match.start()], match.group().lstrip(CLOSING)
        if "\n" in gap or _ends(head, text[match.end()]):
            pieces.append((head + match.group()[: len(match.group()) - len(gap)], gap))
            start = match.end()
    return [*pieces, (text[start:], "")] if text[start:] else pieces


def _ends(head: str, following: str) -> bool:
    """Whether a full stop here ends a sentence, given the character that follows it."""
    if head.endswith(("!", "?")):
        return True
    last = head.split()[-1].lower().strip(f".…([{CLOSING}") if head.split() else ""
    short = last in ABBREVIATIONS or (len(last) == 1 and last.isalpha())
    return not (following.islower() or short or (last.isdigit() and head.strip(" .").isdigit()))  # a list's number


def without(text: str, unwanted: Callable[[str], bool]) -> tuple[str, list[str]]:
    """The text without the sentences that are unwanted, and those sentences."""
    kept, removed = [], []
    for sentence, gap in split(text):
        if unwanted(sentence):
            removed.append(sentence.strip())
        else:
            kept.append(sentence + gap)
    return "".join(kept).strip(), removed


def without_instructions(answer: str, instructions: str) -> tuple[str, list[str]]:
    """The answer without sentences that stand in the instructions, and those sentences.

    Args:
        answer: as the model wrote it.
        instructions: the system prompt; "" removes nothing.
    """
    told, lines = plain(instructions), {plain(line) for line in instructions.splitlines()} - {""}

    def repeated(sentence: str) -> bool:
        said = plain(sentence)
        return bool(said) and (said in lines or (len(said.split()) >= MIN_WORDS and said in told))

    return without(answer, repeated)
