"""Prescription shorthand in words: "bd" is twice daily, "po" is by mouth."""

from functools import lru_cache

from docgemma.text.frequency import RATE, times_per_day
from docgemma.text.words import clinical, listed, plain

LETTERS = 4  # of a shorthand within a phrase; "daily" in "twice daily" is a word


@lru_cache(maxsize=4)
def _shorthand(*kinds: str) -> dict[str, str]:
    """Of `frequencies` and `routes` in `data/clinical/sig.yaml`: as written (plain) -> in words."""
    entries = [entry for kind in kinds for entry in clinical("sig")[kind]]
    return {_undotted(str(said)): entry["plain"] for entry in entries for said in entry["said"]}


def expanded(text: str, *kinds: str) -> str:
    """The text with each known shorthand in words: "bd prn", "PO". Within a phrase "in" is a word, not the nose."""
    if in_words(text, *kinds):
        return text
    known = {said: words for said, words in _shorthand(*kinds).items() if said not in listed("request_words", "stop")}
    rate = RATE.match(text)
    head = [rate.group()] if rate and " " in rate.group() else []  # "q12 weeks" is no "q12"
    words = [(word, _undotted(word)) for word in [*head, *text[len("".join(head)) :].split()]]
    short = {word for _, word in words if len(word) <= LETTERS or any(map(str.isdigit, word))}
    spelt = " ".join(known.get(word, said) if word in short else said for said, word in words)
    now, first = known.get("stat", "?"), "first dose now (stat)"  # "bd stat", "stat then bd"; not "stat x1"
    if (times_per_day(spelt.replace(now, "")) or 0) > 0 and now in spelt:
        spelt = spelt.replace(f" {now}", f", {first}").replace(f"{now} ", f"{first}, ")
    return _shorthand(*kinds).get(_undotted(text), spelt)


def in_words(text: str, *kinds: str) -> bool:
    """Whether the text is what a shorthand stands for, "once, now (stat)": it is not spelt out again."""
    return text in _shorthand(*kinds).values()


def _undotted(text: str) -> str:
    return plain(text.replace(".", ""))
