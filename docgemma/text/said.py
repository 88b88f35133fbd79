"""What the words of an allergy say: its severity, whether a reaction is one. No I/O."""

from docgemma.text.words import clinical, listed, plain

CLAUSE_ENDS = str.maketrans(dict.fromkeys(",;.?!+&", "\n"))
ENDS_OF_ASKED = str.maketrans(dict.fromkeys(",;?!+&\n", "\n"))


def clauses(message: str) -> list[str]:
    """The parts of a message between marks and "and", of two words or more."""
    ended = message.translate(CLAUSE_ENDS).replace(" and ", "\n")
    return [clause.strip() for clause in ended.split("\n") if len(clause.split()) > 1]


def parted(message: str) -> str:
    """A message with an end of line for each mark between clauses and each "and": "2.5 mg" stays whole."""
    for mark in (", ", "; ", ". ", "! ", "? ", ": ", " and ", " but ", " then ", " + ", " - ", " – "):
        message = message.replace(mark, "\n" * len(mark))
    return message


def asked_parts(said: str) -> list[tuple[str, bool]]:
    """The clauses of a message, decimals whole, a lone "stop" too; and whether each ends in a question mark."""
    for end in (". ", " and ", " - ", " then "):
        said = said.replace(end, "\n")
    parts, at = [], 0
    for part in said.translate(ENDS_OF_ASKED).split("\n"):
        at += len(part) + 1
        parts.append((part.strip(" .").removeprefix("then "), said[at - 1 : at] == "?"))
    return [(part, asked) for part, asked in parts if part]


def closed(text: str, kind: str) -> str:
    """A text as one of few values, `severities` or `statuses`, by the beginnings of its words."""
    known = clinical("request_words")[kind]
    return next((value for word in plain(text).split() for value in known if word[:3] in known[value]), "")


def bracketed(message: str) -> str:
    """A severity that stands in brackets: "(mod)"."""
    words = [word.strip("().,;") for word in message.casefold().split() if word[0] == "(" and ")" in word]
    known = clinical("request_words")["severities"]
    return next((value for word in words for value in known if word and value.startswith(word)), "")


def is_mechanism(text: str) -> bool:
    """Whether a reaction is none but how it comes about: a lacking enzyme."""
    return bool(listed("request_words", "mechanisms") & set(plain(text).split()))
