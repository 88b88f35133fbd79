"""Claims of absence and of safety in an answer, held against the evidence. Unknown is never "none"."""

import re
from collections.abc import Callable
from dataclasses import dataclass

NAMED = Callable[[str], frozenset[str]]  # a text -> the generic names of the drugs in it

_NO = r"\b(?:no|not|without|lacks?|lacking|absence of|free of|none|never|n['’]t|neither|nor|zero)\b"


@dataclass(frozen=True)
class Topic:
    """What may be claimed absent. `claim` finds the claim, `present` and `absent` what the evidence says of it.

    `words` is what a claim must be worded with where the evidence says only that nothing is listed or recorded.
    """

    claim: re.Pattern
    present: re.Pattern
    absent: re.Pattern | None
    words: re.Pattern | None = None


def _rule(pattern: str) -> re.Pattern:
    return re.compile(pattern, re.IGNORECASE)


_LISTED = _rule(r"\b(?:list|found|report|record|document|identif|known|available|return|shown?|appear|mention)\w*")
TOPICS = (
    Topic(
        _rule(rf"{_NO}(?:\W+\w+){{0,5}}?\W+(?:boxed|black[\s-]box)\s+warning"),
        _rule(r"\bhas an? (?:FDA )?boxed warning|^boxed warning:"),
        _rule(r"\bno boxed warning"),
    ),
    Topic(
        _rule(
            rf"{_NO}(?:\W+\w+){{0,6}}?\W+interact(?:ions?|ing|s)?\b|"
            r"\bsafe(?:ly)? (?:to (?:combine|take|use|give) )?together"
        ),
        _rule(r"\b(?:contraindicated|major|moderate|minor|serious|severe|significant) interaction\b"),
        _rule(r"\bnone listed in this source|\bno (?:known )?interactions? (?:\w+ ){0,3}(?:listed|found)"),
        _LISTED,
    ),
    Topic(
        _rule(rf"{_NO}(?:\W+(?!interact)\w+){{0,4}}?\W+contraindicat(?:ions?|ed)\b"),
        _rule(r"\bcontraindication:|\bcontraindicated\b"),
        _rule(r"\bno contraindications?"),
    ),
    Topic(
        _rule(r"\bno (?:\w+ ){0,3}?allerg(?:y|ies)\b|\bNKD?A\b|\bnot (?:known to be )?allergic|\ballergies: none"),
        _rule(r"\ballergy: (?!none)|\ballergic to\b"),
        _rule(r"\bno known allergies|\bno allergies are recorded"),
        _LISTED,
    ),
    Topic(
        _rule(
            r"\bno (?:\w+ ){0,3}?(?:medications?|medicines|prescriptions)\b|\bnot (?:currently )?(?:taking|on) any\b"
        ),
        _rule(r"^active medication: "),
        _rule(r"\bno active medications"),
        _LISTED,
    ),
    Topic(
        _rule(r"\bno (?:\w+ ){0,4}?(?:trials?)\b"),
        _rule(r"\bNCT\d{8}\b|\bDEMO-TRIAL-\d+"),
        _rule(r"^no (?:\w+[\s-]){0,4}trials were found"),
    ),
    Topic(
        _rule(r"\bno (?:\w+ ){0,4}?(?:articles?|studies|publications?|literature)\b"),
        _rule(r"\bDEMO-LIT-\d+|\(\w[^)]*, \d{4}, \w[\w-]*\)"),
        _rule(r"^no articles were found|no results were found"),
    ),
    Topic(
        _rule(
            r"\bno (?:\w+ ){0,2}?patients? (?:named|found|matching|with|by)|\bpatient (?:was|could) not (?:be )?found"
        ),
        _rule(r"^found patient "),
        _rule(r"^no patient named|no results were found"),
    ),
    Topic(
        _rule(r"\bno (?:\w+ ){0,3}?(?:labs?|laboratory|lab results?)\b(?! abnormal)"),
        _rule(r"^(?:abnormal )?lab: "),
        _rule(r"\bno lab results are recorded"),
    ),
)

SAFE = _rule(
    r"\b(?:is|are|be|considered|appears?|seems?|generally|remains?)\s+(?:\w+\s+)?safe\b|"
    r"\bsafely\b|\bsafe to\b|\bno (?:\w+ )?risks?\b"
)
NOT_SAFE = _rule(r"\b(?:not|n['’]t|un|whether|if|cannot|never|nor|how)\b(?:\W+\w+){0,4}?\W+safe|\bunsafe\b")
DANGER = _rule(
    r"\bboxed warning:|\bhas an? (?:FDA )?boxed warning|\bcontraindication:|\b(?:contraindicated|major) interaction|"
    r"\bunavailable\b|\bdid not respond\b|\bnot checked\b|\bnone listed in this source|\bwas not found"
)
DONE = _rule(
    r"\b(?:i|we)(?:['’]ve| have)? (?:successfully )?(?:prescribed|ordered|recorded|added|documented|saved|placed)\b|"
    r"\b(?:order|prescription|note|allergy|medication|entry)\b(?:\W+\w+){0,8}?\W+(?:has been|have been|was|were|is)\s+"
    r"(?:now\s+)?(?:successfully\s+)?(?:placed|created|saved|recorded|added|documented|entered|"
    r"submitted|prescribed|ordered)\b|"
    r"\b(?:has been|have been|was|were)\s+(?:successfully\s+)?(?:prescribed|ordered|recorded|added|documented|saved)\b"
    r".{0,80}"
    r"\b(?:to|in|into) (?:the|his|her|their) (?:record|chart)\b|"
    r"\bsuccessfully (?:prescribed|ordered|recorded|added|saved|documented)"
)
WRITTEN = _rule(r"^(?:Prescribed |Recorded an allergy |Saved the )")


def unfounded(sentence: str, evidence: list[str], named: NAMED) -> bool:
    """Whether a sentence claims an absence, a safety or a finished write that the evidence does not bear out.

    Args:
        sentence: of the answer.
        evidence: lines of this turn's evidence.
        named: gives the generic names of the drugs in a text, so that "metformin has no boxed warning" is held against
            what is known of metformin and not of another drug.
    """
    if any(topic.claim.search(sentence) and not _borne_out(sentence, topic, evidence, named) for topic in TOPICS):
        return True
    if SAFE.search(sentence) and not NOT_SAFE.search(sentence):
        meant = named(sentence)
        if any(DANGER.search(line) and _same_drugs(meant, named(line)) for line in evidence):
            return True
    return claims_entry(sentence, evidence)


def claims_entry(sentence: str, evidence: list[str]) -> bool:
    """Whether a sentence says that something was written to a record, and no line of the evidence says that it was."""
    return bool(DONE.search(sentence)) and not any(WRITTEN.search(line) for line in evidence)


def _borne_out(sentence: str, topic: Topic, evidence: list[str], named: NAMED) -> bool:
    meant = named(sentence)
    present = any(
        topic.present.search(line) and not _denied(line, topic) and _same_drugs(meant, named(line)) for line in evidence
    )
    absent = topic.absent and any(topic.absent.search(line) and _same_drugs(meant, named(line)) for line in evidence)
    if present or not absent:
        return False
    return topic.words is None or bool(topic.words.search(sentence))


def _denied(line: str, topic: Topic) -> bool:
    return bool(topic.absent and topic.absent.search(line))


def _same_drugs(meant: frozenset[str], line: frozenset[str]) -> bool:
    """Whether a line of evidence is about what a sentence names; a sentence without a drug is about all of them."""
    return not meant or not line or meant <= line or line <= meant
