"""Reading the answer to a clarification: which option was meant, or which missing values are there. No guessing."""

from calendar import month_name
from collections.abc import Iterable
from typing import Any

from rapidfuzz import fuzz

from docgemma.reading.terms import names
from docgemma.state import Clarification, Option, Request
from docgemma.text.births import read_births
from docgemma.text.words import clinical, listed, plain

MAX_WORDS = 40  # an answer; what is longer is a new question
TYPO_SCORE = 86  # of 100, for a name that is spelt a little differently
TYPO_LEAD = 8  # points by which it must be nearer to one option than to all others
PLACES = "one first second third fourth fifth sixth seventh eighth ninth tenth"
NUMBERS = "zero one two three four five six seven eight nine ten"
YES = frozenset("yes yep yeah yup correct right exactly sure ok okay affirmative confirmed him her that's it".split())
MONTHS = frozenset(month.casefold() for month in month_name if month)
OLDER, YOUNGER = frozenset(["older", "oldest", "elder", "old", "elderly"]), frozenset(["younger", "youngest", "young"])
DESCRIBED = 8  # words of a description
BESIDE = frozenset({"fix", "find", "ok", "gk", "chat", "oos", "demo", "chart"})  # asks of an answer that gives a value


def read_answer(text: str, clarification: Clarification) -> str | None:
    """The id of the option that an answer means, or None if it means none of them, or more than one.

    Understood: the id, a name in full, a part of it that only one option has, a name with a typo, a place in the list
    ("the second one", "2", "last"), a date or year of birth, "yes" to a single option. "The older one" is not guessed.
    """
    options, words = clarification["options"], plain(text).split()
    if not words or not options or len(words) > MAX_WORDS:
        return None
    if by_id := [item["id"] for item in options if plain(item["id"]) in words]:
        return _only(by_id)
    if len(options) == 1 and set(words) <= YES | _filler() and set(words) & YES:
        return options[0]["id"]
    rest = [word for word in words if word not in _filler()]
    if (place := _place(rest or words[-1:], len(options))) is not None:
        return options[place]["id"]
    if by_birth := _by_birth(text, words, options):
        return by_birth
    spelt = _by_name(words, options) if "a" in words else None  # an initial, not an article: "james a wilson"
    return spelt or _by_name(rest, options)


def described(text: str, clarification: Clarification, charts: dict[str, dict[str, Any]]) -> str | None:
    """The id of the one option whose chart has what a short answer says: "the older one with AF"."""
    words = [word for word in plain(text).split() if word not in _filler()]
    if not words or len(words) > DESCRIBED or not charts:
        return None
    telling = [word for word in words if any(_in_chart(word, chart) for chart in charts.values())]
    fitting = {option: chart for option, chart in charts.items() if all(_in_chart(word, chart) for word in telling)}
    if telling and len(fitting) == 1:
        return next(iter(fitting))
    ages = [word for word in words if word in OLDER | YOUNGER]
    born = {option: chart["patient"]["birth_date"] for option, chart in fitting.items()}
    if not ages or not born or len(set(born.values())) < len(born):
        return None
    return (min if ages[0] in OLDER else max)(born, key=born.__getitem__)


def read_missing(request: Request, clarification: Clarification, ask: str) -> dict[str, Any]:
    """The missing arguments that a message supplies; {} if it is a new question.

    Args:
        request: the message as read.
        clarification: what was asked for.
        ask: the ask that its tool serves; a message with another one is a question of its own.
    """
    if set(request["asks"]) - {ask, *BESIDE}:
        return {}
    details, order = request["details"], request["orders"][0] if request["orders"] else None
    before = [str(item) for item in clarification["args"].get("drug_names") or []]
    drugs = [drug["name"] for drug in request["drugs"]]
    said: dict[str, Any] = {
        "patient_id": request["patients"][0]["id"] if request["patients"] else "",
        "dosage": (order["dose"] if order else "") or details.get("dose", ""),
        "frequency": (order["frequency"] if order else "") or details.get("frequency", ""),
        "drug_names": list(dict.fromkeys([*before, *drugs])) if drugs else [],
    }
    found = {field: said[field] for field in clarification["missing"] if said.get(field)}
    left = [field for field in clarification["missing"] if field not in said]
    if len(left) == 1 and not found and len(plain(request["said"]).split()) <= MAX_WORDS:
        found[left[0]] = request["said"].strip(" .")
    return found


def _filler() -> frozenset[str]:
    """Words of an answer that name none of the options."""
    return frozenset().union(*(listed("request_words", key) for key in ("stop", "persons", "answer")))


def _in_chart(word: str, chart: dict[str, Any]) -> bool:
    """Whether a medicine or a problem of the chart is called so, by a synonym of `data/clinical` too."""
    entries = [item["name"] for item in [*chart["medications"], *chart["conditions"]] if item["active"]]
    synonyms = [entry["chart"] for entry in clinical("problems")["problems"] if word in entry["chart"]]
    return any(names([word], name) or any(names(said, name) for said in synonyms) for name in entries)


def _place(words: list[str], count: int) -> int | None:
    """A place in the list: "second", "2", "2nd", "last"; "the one" points at nothing."""
    word = words[0] if len(words) == 1 else ""
    if word in ("last", "final"):
        return count - 1
    for listing in (PLACES.split(), NUMBERS.split()):
        place = listing.index(word) if word in listing else 0
        if 0 < place <= count and word != "one":
            return place - 1
    digits = word.rstrip("stndrh")
    return int(digits) - 1 if digits.isdecimal() and 0 < int(digits) <= count else None


def _by_birth(text: str, words: list[str], options: list[Option]) -> str | None:
    """By date of birth, or its year; a name said beside it must fit as well."""
    births = read_births(text)
    labels = {item["id"]: set(plain(item["label"]).replace(",", " ").split()) for item in options}
    born = {item["id"]: item["label"].rpartition(" ")[2] for item in options}
    given = {day for birth in births for day in birth.days if len(day) == 10}
    years = {day for birth in births if birth.kind == "age" for day in birth.days} | set(words)
    name = {word for word in words if word.isalpha() and len(word) > 3} - _filler() - MONTHS
    if not given:  # "the 85 lady": only what is part of a name here has to fit
        name &= set().union(*labels.values())
    return _only(
        option
        for option, day in born.items()
        if name <= labels[option] and (day in given if given else years & {day[:4], day[2:4]})
    )


def _by_name(words: list[str], options: list[Option]) -> str | None:
    wanted = [word.removesuffix("'s").replace("'", "") for word in words]
    labels = {item["id"]: plain(item["label"]).replace("'", "").split() for item in options}
    full = [item["id"] for item in options if plain(item["label"].split(",")[0]).replace("'", "").split() == wanted]
    part = full or [option for option, label in labels.items() if wanted and set(wanted) <= set(label)]
    if part:
        return _only(part)
    said = " ".join(wanted)
    scores = sorted(
        ((fuzz.partial_ratio(said, " ".join(label)), option) for option, label in labels.items()), reverse=True
    )
    if len(said) < 4 or scores[0][0] < TYPO_SCORE:
        return None
    return scores[0][1] if len(scores) == 1 or scores[0][0] - scores[1][0] >= TYPO_LEAD else None


def _only(ids: Iterable[str]) -> str | None:
    found = list(dict.fromkeys(ids))
    return found[0] if len(found) == 1 else None
