"""Hold claims of absence, of safety and of finished entries against the evidence. Unknown is never "none".

What counts as a claim, and what bears it out, is listed in `data/clinical/claims.yaml`.
"""

from collections.abc import Callable, Iterable
from typing import Any

from docgemma.text.words import clinical, plain

NAMED = Callable[[str], frozenset[str]]  # a text -> the generic names of the drugs in it
REACH = 7  # words between a negation and what it denies
NEAR = 5


def unfounded(sentence: str, evidence: list[str], named: NAMED) -> bool:
    """Whether a sentence claims an absence, a safety or a finished entry that the lines of evidence do not bear out.
    `named` gives the generic names of the drugs in a text, so that "metformin has no boxed warning" is held against
    what is known of metformin and not of another drug."""
    lists = clinical("claims")
    meant = named(sentence)
    about = [line for line in evidence if _same_drugs(meant, named(line))]
    if any(_claims(sentence, topic) and not _borne_out(sentence, topic, about) for topic in lists["absences"]):
        return True
    said_safe = [f"{phrase} " for phrase in lists["safe"] if says(sentence, [f"{phrase} "])]
    safe = any(not _before(sentence, phrase, lists["unless"], NEAR) for phrase in said_safe)
    return (safe and any(says(line, lists["danger"]) for line in about)) or claims_entry(sentence, evidence)


def claims_entry(sentence: str, evidence: list[str]) -> bool:
    """Whether a sentence says that something was written to a record, and no line of the evidence says that it was."""
    lists = clinical("claims")
    if any(line.casefold().startswith(tuple(lists["written"])) for line in evidence):
        return False
    words = plain(sentence).split()
    named = any(word.removesuffix("s") in lists["entries"] for word in words)
    done = [at for at, word in enumerate(words) if word in lists["done"]]
    doing = [set(words[max(at - 3, 0) : at]) for at in done]
    return any(near & set(lists["doers"]) or (named and near & set(lists["passive"])) for near in doing)


def says(text: str, phrases: Iterable[str]) -> bool:
    """Whether one of the phrases begins at a word of the text; one that ends in ":" begins the text."""
    folded = f" {plain(text)} "
    return any(
        text.lstrip().casefold().startswith(phrase) if phrase.endswith(":") else f" {phrase}" in folded
        for phrase in phrases
    )


def _claims(sentence: str, topic: dict[str, Any]) -> bool:
    deny = topic.get("after") or clinical("claims")["negations"]
    reach = topic.get("reach", REACH)
    denied = any(_before(sentence, phrase, deny, reach) for phrase in topic["claim"])
    return denied or says(sentence, topic.get("alone", ()))


def _before(sentence: str, phrase: str, words: Iterable[str], reach: int) -> bool:
    """Whether one of the words, or a verb with "n't", stands at most so many words before a phrase."""
    heads = f" {plain(sentence)} ".split(f" {phrase}")[:-1]
    return any(word in words or word.endswith("n't") for head in heads for word in head.split()[-reach:])


def _borne_out(sentence: str, topic: dict[str, Any], evidence: list[str]) -> bool:
    absent = [line for line in evidence if says(line, topic["absent"])]
    if not absent or any(says(line, topic["present"]) for line in evidence if line not in absent):
        return False
    return not topic.get("listed") or says(sentence, clinical("claims")["listed"])


def _same_drugs(meant: frozenset[str], line: frozenset[str]) -> bool:
    """Whether a line of evidence is about what a sentence names; a sentence without a drug is about all of them."""
    return not meant or not line or meant <= line or line <= meant
