"""Reading the answer to a clarification: which option was meant, or which missing values are there. No guessing."""

import re
import unicodedata
from datetime import date

from rapidfuzz import fuzz

from docgemma.rules.details import doses, frequencies
from docgemma.rules.ids import PATIENT_ID, clean, patient_ids
from docgemma.state import Clarification, Option

MAX_CHARS = 300  # an answer; what is longer is a new question
TYPO_SCORE = 86  # of 100, for a name that is spelt a little differently
TYPO_LEAD = 8  # points by which it must be nearer to one option than to all others

ORDINALS = {
    "first": 1, "1st": 1, "one": 1, "second": 2, "2nd": 2, "two": 2, "third": 3, "3rd": 3, "three": 3,
    "fourth": 4, "4th": 4, "four": 4, "fifth": 5, "5th": 5, "five": 5, "sixth": 6, "6th": 6, "six": 6,
    "seventh": 7, "7th": 7, "seven": 7, "eighth": 8, "8th": 8, "eight": 8, "ninth": 9, "9th": 9, "nine": 9,
    "tenth": 10, "10th": 10, "ten": 10,
}  # fmt: skip
ORDINAL = re.compile(
    r"^(?:(?:i\s+mean(?:t)?|it['’]?s|that['’]?s|the|please|use|take|pick|choose|select|number|"
    r"n[or]\.?\s*(?=\d)|option|#|\()\s*){0,4}"
    r"(?P<which>\d{1,2}|[a-z]+|\d{1,2}(?:st|nd|rd|th))"
    r"(?:\s*\)|\.)?(?:\s+(?:one|option|patient|drug|choice|please|of\s+them|in\s+the\s+list|thanks|"
    r"thank\s+you)){0,3}[\s.!]*$",
    re.IGNORECASE,
)
YES = re.compile(
    r"^(?:yes|yep|yeah|yup|correct|right|exactly|sure|ok|okay|that['’]?s\s+(?:right|correct|it|the\s+one|him|her)|"
    r"(?:yes,?\s+)?(?:that|this)\s+one|affirmative|confirmed?)[\s,.!]*(?:please|it['’]?s\s+correct)?[\s.!]*$",
    re.IGNORECASE,
)
FILLER_WORDS = (
    "a an and born called chart date dob drug for from he her him his i id in is it its mean meant mr mrs ms named of "
    "on one option patient please s she that the their them this use with yes year years"
)
FILLER = frozenset(FILLER_WORDS.split())
QUESTION = re.compile(
    r"\?|^(?:what|who|when|where|why|how|which|is|are|does|do|did|can|could|should|would|will|check|find|search|show|"
    r"look|prescribe|order|start|add|write|document|save|list|explain|tell|never\s*mind|forget|cancel|stop)\b",
    re.IGNORECASE,
)

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
ISO = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
NUMERIC = re.compile(r"(?<!\d)(\d{1,2})[-/.\s](\d{1,2})[-/.\s](\d{4})(?!\d)")
WORDED = re.compile(r"(?<!\d)(\d{1,2})(?:st|nd|rd|th)?(?:\s+of)?\s+([a-z]{3,9})\.?,?\s+(\d{4})(?!\d)", re.IGNORECASE)
AMERICAN = re.compile(r"\b([a-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})(?!\d)", re.IGNORECASE)
YEAR_IN_LABEL = re.compile(r"(?<!\d)(?:19|20)\d{2}(?!\d)")
YEAR = re.compile(r"(?<![\d/.-])(?:19|20)\d{2}(?![\d-])")


def read_answer(text: str, clarification: Clarification) -> str | None:
    """The id of the option that an answer means, or None if it means none of them, or more than one.

    Understood: the id, a name in full, a part of it that only one option has, a name with a typo, a place in the list
    ("the second one", "2", "#2", "last"), a date of birth, "yes" to a single option. "The older one" is not guessed.
    """
    said = _plain(text)
    options = clarification["options"]
    if not said or not options or len(said) > MAX_CHARS:
        return None
    by_id = [item["id"] for item in options if item["id"].casefold() in _tokens_of_id(said)]
    if by_id:
        return by_id[0] if len(set(by_id)) == 1 else None
    if PATIENT_ID.search(said):
        return None  # an id that is not on offer
    if len(options) == 1 and YES.match(said):
        return options[0]["id"]
    if (place := _place(said, len(options))) is not None:
        return options[place]["id"]
    if QUESTION.search(said):
        return None
    return _by_birth(said, options) or _by_name(said, options)


def read_missing(text: str, clarification: Clarification) -> dict[str, str | list[str]]:
    """The missing arguments that a message supplies, as written; {} if it is a new question.

    One missing free-text field takes the whole message; doses, frequencies and ids are found inside it.
    """
    said, missing = " ".join(clean(text).split()), list(clarification["missing"])
    if not said or not missing:
        return {}
    found: dict[str, str | list[str]] = {}
    patterned = {
        "patient_id": patient_ids(said)[:1], "dosage": doses(said)[:1], "frequency": frequencies(said)[:1],
    }  # fmt: skip
    for field, values in patterned.items():
        if field in missing and values:
            found[field] = values[0]
    left = [field for field in missing if field not in patterned]
    if len(said) > MAX_CHARS or (not found and QUESTION.search(_plain(said))):
        return {}
    if left == ["drug_names"]:
        names = [part.strip() for part in re.split(r",|;|/|\+|\band\b|\bwith\b", said, flags=re.IGNORECASE)]
        names = [name for name in names if name]
        already = [str(item) for item in clarification["args"].get("drug_names") or []]
        names = names if len(names) > 1 else [*already, *names]
        return {**found, "drug_names": names} if len(names) > 1 else found
    if len(left) == 1 and not found:
        found[left[0]] = _value(said)
    elif left and len(parts := _parts(said)) == len(missing):
        found |= dict(zip(missing, parts, strict=True))
    return found


def birth_dates(text: str) -> set[str]:
    """Dates in a text as ISO, in any notation; 03/04/1970 is both the third of April and the fourth of March."""
    found = {_iso(*map(int, match.groups())) for match in ISO.finditer(text)}
    for match in NUMERIC.finditer(text):
        first, second, year = map(int, match.groups())
        found |= {_iso(year, first, second), _iso(year, second, first)}
    for match in WORDED.finditer(text):
        found.add(_iso(int(match[3]), _month(match[2]), int(match[1])))
    for match in AMERICAN.finditer(text):
        found.add(_iso(int(match[3]), _month(match[1]), int(match[2])))
    return found - {None}


def _by_birth(said: str, options: list[Option]) -> str | None:
    """By date of birth, or its year; a name said beside it must fit as well."""
    given = birth_dates(said)
    years = set() if given else set(YEAR.findall(said))
    months = [word for word in _words(said) if _month(word)]
    name = [word for word in _words(said) if word.isalpha() and word not in FILLER and word not in months]
    return _only(
        item["id"]
        for item in options
        if (birth_dates(item["label"]) & given or years & set(YEAR_IN_LABEL.findall(item["label"])))
        and set(name) <= set(_words(item["label"]))
    )


def _by_name(said: str, options: list[Option]) -> str | None:
    words = [word for word in _words(said) if word not in FILLER]
    if not words:
        return None
    for wanted in (_words(said), words):
        if exact := [item["id"] for item in options if _words(_name(item)) == wanted]:
            return _only(exact)
    part = [item["id"] for item in options if set(words) <= set(_words(item["label"]))]
    if part:
        return _only(part)
    begun = [item["id"] for item in options if " ".join(_words(_name(item))).startswith(" ".join(words))]
    return _only(begun) if begun else _by_typo(" ".join(words), options)


def _by_typo(said: str, options: list[Option]) -> str | None:
    """The option that is spelt nearly so, if it is clearly nearer than every other."""
    scores = sorted(
        ((max(fuzz.ratio(said, name), _best_part(said, name)), item["id"])
         for item in options if (name := " ".join(_words(_name(item))))),
        reverse=True,
    )  # fmt: skip
    if not scores or len(said) < 4 or scores[0][0] < TYPO_SCORE:
        return None
    others = [score for score, option in scores if option != scores[0][1]]
    return scores[0][1] if not others or scores[0][0] - others[0] >= TYPO_LEAD else None


def _best_part(said: str, name: str) -> float:
    """One word said, against each word of the name."""
    return max((fuzz.ratio(said, word) for word in name.split()), default=0.0) if " " not in said else 0.0


def _place(said: str, count: int) -> int | None:
    match = ORDINAL.match(said)
    if not match:
        return None
    which = match["which"].lower()
    if which in ("last", "final"):
        return count - 1
    if which == "one" and re.search(r"\b(?:the|that|this)\s+one\b", said, re.IGNORECASE):
        return None  # "the one" points at nothing
    number = int(which) if which.isdigit() else ORDINALS.get(which, 0)
    return number - 1 if 1 <= number <= count else None


def _only(ids) -> str | None:
    found = list(dict.fromkeys(ids))
    return found[0] if len(found) == 1 else None


def _name(option: Option) -> str:
    return option["label"].split(",")[0]


def _plain(text: str) -> str:
    return " ".join(clean(text).split())


def _words(text: str) -> list[str]:
    folded = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return re.findall(r"[^\W_]+", re.sub(r"(?<=\w)['’]s\b", "", folded).replace("'", "").replace("’", "").casefold())


def _tokens_of_id(said: str) -> set[str]:
    return {token.strip(".,;:!?()[]\"'").casefold() for token in said.split()} | {said.strip(" .!").casefold()}


def _value(said: str) -> str:
    return re.sub(r"^(?:it['’]?s|it is|the|use|for)\s+", "", said, flags=re.IGNORECASE).strip(" .")


def _parts(said: str) -> list[str]:
    return [part.strip() for part in re.split(r"[,;\n]", said) if part.strip()]


def _month(word: str) -> int:
    return MONTHS.index(word[:3].lower()) + 1 if word[:3].lower() in MONTHS else 0


def _iso(year: int, month: int, day: int) -> str | None:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None
