"""What a message asks for of published studies and trials, by name, by id or in words."""

from collections.abc import Callable
from itertools import pairwise

from docgemma.knowledge.literature import shipped, studies_in
from docgemma.reading.marked import Marked
from docgemma.reading.meant import SURE
from docgemma.reading.terms import said_in
from docgemma.text.said import clauses, closed
from docgemma.text.words import SHORT, listed, plain


def studies(message: str, ordinary: Callable[[str], bool]) -> list[str]:
    """Studies that are named, and articles by their number. One that the collection does not have counts beside one
    that it has ("PARADIGM, and SOLVD"), beside "trial" or "study", or alone."""
    tested = {word for word, how in pairwise(_words(message)) if how.casefold() in listed("request_words", "tested")}
    named = [name for name in studies_in(message) if name not in tested]  # "FAST positive" is a stroke test
    if named and message.isupper() and [word for word in _words(message) if ordinary(plain(word))] == named:  # "PAUSE"
        return []
    words = _words(message)
    beside = {word for word, noun in pairwise(words) if noun.casefold() in listed("request_words", "studies")}
    known = {part for name in named for part in name.replace("-", " ").split()}
    others = [word for word in words if word.isupper() and word.isalpha() and len(word) > SHORT - 1]
    others = [word for word in others if word not in known and not ordinary(plain(word))]
    kept = [word for word in others if (named and not message.isupper()) or word in beside or words == [word]]
    return [*named, *(word for word in words if word in shipped("literature")), *kept]


def queries(marked: Marked) -> list[str]:
    """What is to be searched for: the surest span, and each other clause that asks for evidence."""
    best = marked.best("query")
    others = [part for part in clauses(marked.message) if best not in part and part not in best]
    return [best, *(part for part in others if said_in(part, "literature"))] if best else []


def status(marked: Marked) -> str:
    """A trial's recruitment status, where one is asked for."""
    told = [word for word in marked.message.split() if "recruiting" in word.casefold()]
    return closed(marked.best("status") or "".join(told[:1]), "statuses") if marked.reading.asks["trial"] > SURE else ""


def trial_ids(message: str) -> list[str]:
    """Trials that are named by an id: of ClinicalTrials.gov, or of the collection."""
    words = [word.upper() for word in _words(message)]
    registered = {word for word in words if len(word) == 11 and word.startswith("NCT") and word[3:].isdigit()}
    return [word for word in words if word in registered or word in shipped("trials")]


def _words(message: str) -> list[str]:
    return [word.strip(".,;:?!()") for word in message.split()]
