"""What the words beside a mark add to an order or an allergy: whole instructions, reactions and severities. No I/O."""

from collections.abc import Iterable

from docgemma.text.words import clinical, listed, plain

CLAUSE_ENDS = str.maketrans(dict.fromkeys(",;.?!+&", "\n"))


def clauses(message: str) -> list[str]:
    """The parts of a message between marks and "and", of two words or more."""
    ended = message.translate(CLAUSE_ENDS).replace(" and ", "\n")
    return [clause.strip() for clause in ended.split("\n") if len(clause.split()) > 1]


def closed(text: str, kind: str) -> str:
    """A text as one of few values, `severities` or `statuses`, by the beginnings of its words."""
    known = clinical("request_words")[kind]
    return next((value for word in plain(text).split() for value in known if word[:3] in known[value]), "")


def bracketed(message: str) -> str:
    """A severity that stands in brackets: "(mod)"."""
    words = [word.strip("().,;") for word in message.casefold().split() if word[0] == "(" and ")" in word]
    known = clinical("request_words")["severities"]
    return next((value for word in words for value in known if word and value.startswith(word)), "")


def reaction(text: str, following: str) -> str:
    """A reaction with the words that complete it, "rash all" over; "" for a mechanism: an enzyme is no reaction."""
    rest = " ".join(word.strip(".,;") for word in following.split()) + " "
    more = [end for end in listed("request_words", "reaction_ends") if rest.startswith(f"{end} ")]
    told = "" if listed("request_words", "mechanisms") & set(plain(text).split()) else text
    return " ".join([told, *sorted(more, key=len)[-1:]]) if told else ""


def instructions(message: str, places: Iterable[tuple[int, int]]) -> str:
    """Marked instructions: "3 days as part" of the "protocol" is one, and "24 h. rx" it is 24 h."""
    told, last = "", 0
    for start, end in places:
        head, _, tail = message[start:end].rpartition(". ")
        between = message[last:start] if told else ""
        of = between.strip() and set(between.split()) <= listed("request_words", "stop")
        ordered = head and set(plain(tail).split()) <= listed("request_words", "commands")
        told, last = told + (between if of else ", " if told else "") + (head if ordered else message[start:end]), end
    return told
