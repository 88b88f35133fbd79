"""What an allergy entry may say: the substance and the reaction, as a question says them. Pure."""

import re
from collections.abc import Sequence

from docgemma.rules.details import doses, without_amounts
from docgemma.rules.drug_classes import classes_said
from docgemma.rules.ids import PATIENT_ID
from docgemma.rules.phrases import phrases

SUBSTANCE_WORDS, REACTION_WORDS = 3, 8  # of a span, at most
# an id with the words that lead to it: "..., to patient abc-123"
RECIPIENT = re.compile(
    rf"(?:\b(?:to|for|in|on)\s+)?(?:\b(?:the\s+)?(?:patient|pt)\s+)?{PATIENT_ID.pattern}", re.IGNORECASE
)
DEGREE = re.compile(
    r"(?:\s*[,/;.]|\s[-–—])\s*(?:severity\s*(?:is|was|:|=)?\s*|it was\s+)?(?:not (?:at all |too |very )?)?"
    r"(?:mild|moderate|severe|serious)\b",
    re.IGNORECASE,
)  # it has a field of its own
REACTION_CUE = re.compile(
    r"(?:→|[-=]>)\s*|\breactions?(?:\s*(?:was|is|were|:|=|-)\s*|\s+(?!to\b|from\b|of\b|in\b|on\b|with\b|after\b))",
    re.IGNORECASE,
)
# "brought him out in hives", "gave her a rash", "made his lips swell"
HAPPENED = re.compile(
    r"\b(?:(?:brought|brings?|bringing)\s+\w+\s+out\s+in|(?:comes?|came|coming|breaks?|broke)\s+(?:up\s+|out\s+)?in|"
    r"went\s+into|"
    r"(?:gave|gives?|giving)\s+(?:him|her|them|me|the\s+(?:patient|pt)|pt)|caus(?:es?|ed|ing)|"
    r"(?:makes?|made|making)\s+(?:his|her|him|them|their)|gets?|getting|develop(?:s|ed)|suffers?|suffered|experienced)\s+"
    r"(?:an?\s+|some\s+|the\s+)?",
    re.IGNORECASE,
)
LEADS_TO_REACTION = re.compile(r"\b(?:makes?|made|gives?|gave|brings?|brought)\b", re.IGNORECASE)
HAPPENED_END = re.compile(
    r"[,;:.!?()]|\s(?:when|whenever|where|from(?!\shead)|with|on|after|so|if|while|every|each|back|in\s(?:19|20)\d\d|in\s(?:my|this|our)|w(?=/)|last|not|but|please|pls|"
    r"and\s(?:please|we|i|it|is|was|has|he|she|add|put|so|never))\b"
)
ELSEWHERE = re.compile(r"\sin\s(?:my|this|our|the\s(?:patient|pt))\b|,\s*(?:register|please|pls|kindly)\b")
PERHAPS_END = re.compile(r"\sat\b")  # "swelling at a wedding", "redness at the site"
CLAUSE_END = re.compile(r"[;:!?()\n]|\.(?=\s|$)")
NOT_REACTION = re.compile(r"\b(?:from|with|to|by|last|ago|when|while|if)\b", re.IGNORECASE)
ORDER_NEXT = re.compile(
    r"(?:,|\bso\b|\band\b)\s*(?=(?:(?:please|pls|kindly)\s+)?(?:needs?|must|register|add|put|document|record|log|note|enter|save|update|list|flag|include|get|pop|stick|file|kindly|now|so|can|could)\b)",
    re.IGNORECASE,
)
ALLERGY_WORD = re.compile(
    r"\b(?:allerg\w*|intoleran\w*|can['’]?t|cannot|tolerate|patient|adverse|caused)\b", re.IGNORECASE
)
HAPPENS = re.compile(
    r"\b(?:anaphyla\w+|shock|rash\w*|hives|urticaria|swelling|itch\w*|vomiting|nausea|wheez\w+|bronchospasm|"
    r"angio-?o?edema)\b",
    re.IGNORECASE,
)
BODILY = re.compile(
    rf"{HAPPENS.pattern}|\b(?:swoll\w*|swell\w*|tight\w*|pain\w*|burn\w*|flush\w*|vomit\w*|sick\w*|cough\w*|dizz\w*|faint\w*|"
    r"collaps\w*|blister\w*|dermatitis|diarrh\w*|cramp\w*|headaches?|clos\w+|breath\w*|peel\w*|ulcers?|tingl\w*|red\w*|"
    r"lips?|throat|face|tongue|eyes?|stomach|skin)\b",
    re.IGNORECASE,
)
# a word that a span must not be cut off from: no small word, no verb, no degree
CUT_OFF = re.compile(
    r"(?<!['’])\b(?!(?:\w*(?:s|ed|ing)|had|has|got|a|an|the|of|and|or|with|to|in|then|also|bad|badly|nasty|awful|severe\w*|"
    r"moderate\w*|mild\w*|slight|reaction|itself|patient|pt|allergy|her|him|them|me)\s)[a-z]+\s$",
    re.IGNORECASE,
)
FORMS = (
    "and or & v g k contrast dye medium media drug drugs antibiotic antibiotics tablet tablets cream ointment patch "
    "patches injection injections vaccine eye drops products derivatives group family sodium potassium phosphate "
    "sulfate sulphate hydrochloride calcium acid"
)
FORM_WORDS = frozenset(FORMS.split())
DEGREES = (
    "mild mildly moderate moderately severe severely serious slight minor allergy allergic allergies reaction "
    "reactions list chart record new document documented update add log her his their patient type side effect badly"
)
DEGREE_WORDS = frozenset(DEGREES.split())
ALLERGIC_TO = (
    r"\b(?:allerg(?:y|ic)|intoleran(?:ce|t)|hypersensitiv(?:e|ity)|react(?:s|ed|ion)?)\s+(?:is\s+|was\s+)?(?:to|of)\s+"
    r"(?:the\s+)?"
)


def allergens(text: str, drugs: Sequence[str], people: Sequence[str]) -> list[str]:
    """What somebody may be allergic to; where one drug is plainly said to be it, that drug in the form said."""
    others = _substances(text, people, drugs)
    named = [name for name in drugs if re.search(rf"{ALLERGIC_TO}{re.escape(name)}\b", text, re.IGNORECASE)]
    if len(named) == 1:
        return [*named, *(span for span in others if span.startswith(f"{named[0]} "))]
    return [*_not_ordered(drugs, text), *others]


def reactions(text: str, named: Sequence[str]) -> list[str]:
    """What happened: neither the patient, nor the drug, nor the word allergy itself, nor only how bad it was."""
    text = ORDER_NEXT.sub("; ", DEGREE.sub(";", _without_order(text)))
    return _happened(text) or _befell(text, named) or _bodily(_may_have_happened(text, named), text)


def _may_have_happened(text: str, named: Sequence[str]) -> list[str]:
    return [
        span
        for span in phrases(text, REACTION_WORDS, across_commas=True)
        if not NOT_REACTION.search(span)
        and not re.search(rf"\b(?:to|from|on|by|after)\s+(?:\w+\s+)?{re.escape(span)}", text)
        and not ALLERGY_WORD.search(span)
        and not _with_substance(span)
        and not classes_said(span)
        and not _beside(span, named)
        and span.split()[0].casefold() not in DEGREE_WORDS
    ]


def _bodily(spans: list[str], text: str) -> list[str]:
    """Those that say what a body does, where there are any; "contact dermatitis" and not its second word alone."""
    found = [span for span in spans if BODILY.search(span)]
    whole = [span for span in found if not CUT_OFF.search(text[: text.find(span)])]
    return whole or found or spans


def _not_ordered(drugs: Sequence[str], text: str) -> list[str]:
    """Without those that a dose follows: "allergy to iodine, then start loratadine 10 mg"."""
    return [name for name in drugs if not any(f"{name} {dose}" in text for dose in doses(text))]


def _more_than(drugs: Sequence[str], span: str) -> bool:
    """Whether a span goes on after a drug's name with what is no form of it: "amlodipine ankle swelling"."""
    words = {word.casefold() for word in span.split()}
    named = {word.casefold() for name in drugs for word in name.split()}
    return bool(words & named) and not words - named <= FORM_WORDS


def _substances(text: str, people: Sequence[str], drugs: Sequence[str]) -> list[str]:
    """What somebody may be allergic to: neither a person, nor an id, nor how bad it was."""
    text = _without_order(text)
    happened = _happened(text) or _befell(text, people)
    text = LEADS_TO_REACTION.sub("; ", HAPPENED.sub("; ", text))
    return [
        span
        for span in phrases(text, SUBSTANCE_WORDS)
        if not ALLERGY_WORD.search(span)
        and not HAPPENS.search(span)
        and not _beside(span, people)
        and not any(span in said for said in happened)
        and not _more_than(drugs, span)
    ]


def _happened(text: str) -> list[str]:
    """The reaction, where a word or an arrow leads to it."""
    after = [CLAUSE_END.split(text[match.end() :], maxsplit=1)[0] for match in REACTION_CUE.finditer(text)]
    after = [ELSEWHERE.split(clause, maxsplit=1)[0] for clause in after]
    return [found for clause in after for found in phrases(clause, REACTION_WORDS, across_commas=True)[:1]]


def _befell(text: str, named: Sequence[str]) -> list[str]:
    """The reaction, where a verb leads to it."""
    after = [HAPPENED_END.split(text[match.end() :], maxsplit=1)[0].strip() for match in HAPPENED.finditer(text)]
    after += [PERHAPS_END.split(said, maxsplit=1)[0] for said in after]
    return [found for found in after if 0 < len(found.split()) <= REACTION_WORDS and not _beside(found, named)]


def _with_substance(span: str) -> bool:
    """ "egg, urticaria": a substance, then what it does."""
    first, *rest = re.split(r"\s*[,/]\s*", span, maxsplit=1)
    return bool(rest and HAPPENS.match(rest[0])) and len(first.split()) <= 2 and not BODILY.search(first)


def _without_order(text: str) -> str:
    """Without ids, doses and frequencies, where one clause ends and another begins."""
    return re.sub(r";['’]s\b", ";", RECIPIENT.sub(";", without_amounts(text)))


def _beside(span: str, named: Sequence[str]) -> bool:
    """Whether a span names somebody or something else, or is a mere word of degree or command."""
    words = {word.casefold().strip(".,'’") for word in span.split()}
    others = {word.casefold() for name in named for word in name.split()}
    return bool(others & words) or words <= DEGREE_WORDS
