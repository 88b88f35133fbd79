"""What a question asks for, without the note that it dictates: what a note says is text, and orders nothing. Pure."""

import re

from docgemma.rules import asked_words as words
from docgemma.rules.note_spans import set_off

MAX_CHARS = 20_000  # a question; more is a pasted document
HOLE = " …. "  # where the note's text was: what was masked once stays so
NOTE_THAT = re.compile(r"\W*(?:please\s+)?note\s+that", re.IGNORECASE)
NOUN = re.compile(r"\b(?:notes?|summary|addendum|dictation|soap|h&p|encounter|visit|letter)\b", re.IGNORECASE)


def request(question: str) -> str:
    """The question without the text of the note that it orders, where that is plainly set off; else as it is.

    "Save a note for abc-123: plan, start lisinopril 10 mg" orders a note and no lisinopril.
    """
    if len(question) > MAX_CHARS or not _orders_note(question):
        return question
    for text in sorted(set_off(question), key=len, reverse=True):
        rest = question.replace(text, HOLE, 1)
        if _orders_note(rest):
            return rest
    return question


def _orders_note(question: str) -> bool:
    """Whether a note is ordered; "document that she is allergic to latex" may well order something else."""
    found = [match for match in words.NOTE.finditer(question) if ordered(question, match.start())]
    return any(names_note(match) for match in found) or (bool(found) and not words.MAYBE_ALLERGY.search(question))


def names_note(match: re.Match) -> bool:
    """Whether an order says that it is a note: "add a note", not "note that" nor "put that in her chart"."""
    return bool(NOUN.search(match.group())) and not NOTE_THAT.fullmatch(match.group())


def ordered(question: str, at: int) -> bool:
    """Whether the verb at this place is an order: nothing before it in its clause asks, conditions or refuses."""
    before = _clause_before(question, at)
    if words.REFUSED.search(before):
        return False
    if joint := words.RESTART.search(before):  # "check his chart and prescribe"; but "should I stop A and start B"
        return not words.ADVICE.search(before[: joint.start()])
    asking = words.NOT_ORDERED.search(before) or words.ASKING.search(before)
    return not asking or bool(words.REQUEST.search(before) and not words.CONDITION.search(before))


def _clause_before(question: str, at: int) -> str:
    head = question[max(0, at - 200) : at]
    cuts = [match.end() for match in words.CLAUSE.finditer(head)]
    return head[cuts[-1] :] if cuts else head
