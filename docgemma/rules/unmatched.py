"""Find the parts of a message that nothing in the answer has a word of, so that they are said and not dropped. Pure."""

from collections.abc import Collection, Iterator, Sequence

from docgemma.reading.drugs import spelt_out
from docgemma.reading.terms import measures_in, said_in, topics_in
from docgemma.state import Request
from docgemma.text.said import asked_parts
from docgemma.text.words import begun_with, clinical, listed, names, plain

# lists of synonyms: what they hold is served by what it stands for
SERVED = ("beyond", "judgements", "stated", "immunizations", "medications", "notes", "social")
STEM = 4  # letters by which "fallen" is found in "falls"
BREAKS = str.maketrans(dict.fromkeys("()\n–—:", ";"))


def unmatched_clauses(request: Request, told: str) -> list[str]:
    """The clauses of a message that ask something, by their mark or first word, and of which no telling word stands in
    the whole answer, `told`. "Moreau vomiting" asks nothing."""
    linked = [*(drug["said"] for drug in request["drugs"]), *request["conditions"]]
    people = {word for patient in request["patients"] for word in _words(f"{patient['said']} {patient['name']}")}
    there = {word[:STEM] for word in _words(told)}
    message = request["said"].translate(BREAKS).replace(" - ", ";").replace("- ", ";").replace(" but ", ";")
    begins = listed("request_words", "questioning")
    parts = [part for part, asked in asked_parts(message) if asked or begun_with(_words(part)) in begins]
    parts = [part for part in parts if len(part.split()) > 1] or request["measures"]  # "smith: bp, cpap"
    found = []
    for clause in parts:
        served = measures_in(clause) or topics_in(clause) or any(said_in(clause, kind) for kind in SERVED)
        served = served or any(names(entry["told"], told) for entry in said_in(clause, "told_as"))
        if served or any(plain(said) in plain(clause) for said in linked):
            continue
        words = [word for word in telling_words(clause) if word not in people]
        if not words or _stands(words, there):
            continue
        spelt = [word for word in telling_words(spelt_out(clause)) if word not in people]  # "afib"
        if not _stands(spelt, there):
            found.append(clause)
    return found


def _stands(words: Sequence[str], stems: Collection[str]) -> bool:
    """Whether one of these words stands in the answer, "max" as maximum."""
    return any(stem.startswith(word[:STEM]) for word in words for stem in stems)


def telling_words(clause: str) -> Iterator[str]:
    empty = listed("request_words", *clinical("request_words")["unfindable"])
    return (word for word in _words(clause) if word.isalpha() and len(word) > 2 and word not in empty)


def _words(text: str) -> list[str]:
    return [word.removesuffix("'s") for word in plain(text).replace("/", " ").replace("-", " ").split()]
