"""The clauses of a message: where they end, and which of them asks or demands; and what the words of an allergy say:
its severity, whether a reaction is one. No I/O."""

from collections.abc import Iterator

from docgemma.text.clauses import quoted
from docgemma.text.words import clinical, listed, plain

CLAUSE_ENDS = str.maketrans(dict.fromkeys(",;.?!+&", "\n"))
STRONG = (". ", "? ", "! ", "; ", "... ", "… ", " - ", " – ", " — ", "\n")
MARKS = (*STRONG, ", ", " & ", " + ", " and ", " also ", " then ")  # behind these only what plainly asks is a question
LEAD = 5  # words within which a command stands, or a bare question
PARTS = 6  # places where a message is parted
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


def two_parts(message: str) -> Iterator[tuple[str, str]]:
    """The two parts at each mark between clauses, as entry and question in either order, sentences first; none within
    quotation marks."""
    places = [(at, mark) for mark in MARKS for at in range(len(message)) if message.startswith(mark, at)]
    for at, mark in places[:PARTS]:
        left, right = message[: at + 1].strip(), message[at + len(mark) :].strip()
        for entry, question in ((left, right), (right, left)) if not quoted(message, at) else ():
            if len(entry.split()) > 2 and plain(question) and (mark in STRONG or asks_plainly(question)):
                yield entry, question


def asks_plainly(part: str) -> bool:
    """Whether a part ends with a question mark, or a clause of it begins with a word that asks."""
    begun = {word for clause in [part, *clauses(part)] for word in plain(clause).split()[:2]}
    return part.endswith("?") or bool(begun & listed("request_words", "questioning", "telling_back"))


def demands(entry: str) -> bool:
    """Whether a part begins with what is to be done, "add X", "could we have X"; it is no order of somebody else's."""
    words = plain(entry).split()
    polite = listed("request_words", "fillers", "opening", "commands")
    verbs = listed("request_words", "to_order", "noting_plainly") | {"script", "have"}
    begun = [word for word in words[:LEAD] if word not in polite or word in verbs][:2]
    told = "\n" in entry or has_quotation(entry) or listed("request_words", "others") & {*words}
    return bool({*begun} & verbs) and not told


def has_quotation(text: str) -> bool:
    """Whether a text holds a mark that opens a quotation, or an apostrophe."""
    return any(mark in text for pair in clinical("request_words")["quotes"] for mark in pair[:1])


def is_brief(question: str) -> bool:
    """Whether a question is of one thing, and tells no value: "also her WCC?", "what does the CXR say"."""
    words = [word for word in plain(question).split() if word not in listed("request_words", "beside_order")]
    asked = {*words[:1]} & listed("request_words", "questioning", "telling_back") or len(words) <= LEAD
    return bool(asked) and len(words) <= 2 * LEAD and not any(word[0].isdigit() for word in words)
