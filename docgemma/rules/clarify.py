"""Reading the answer to a clarification: which option was meant, or which missing values are there. No guessing."""

from calendar import month_name
from collections.abc import Iterable
from typing import Any

from rapidfuzz import fuzz

from docgemma.ehr.births import read_births
from docgemma.reading.terms import names
from docgemma.reading.words import clinical, plain
from docgemma.state import Clarification, Option, Request

MAX_WORDS = 40  # an answer; what is longer is a new question
TYPO_SCORE = 86  # of 100, for a name that is spelt a little differently
TYPO_LEAD = 8  # points by which it must be nearer to one option than to all others
ORDINALS = {word: place for place, words in enumerate(
    ("first 1st one 1", "second 2nd two 2", "third 3rd three 3", "fourth 4th four 4", "fifth 5th five 5",
     "sixth 6th six 6", "seventh 7th seven 7", "eighth 8th eight 8", "ninth 9th nine 9", "tenth 10th ten 10"))
    for word in words.split()}  # fmt: skip
YES = frozenset("yes yep yeah yup correct right exactly sure ok okay affirmative confirmed him her that's it".split())
FILLER = frozenset(
    "a an and born called chart date dob drug for from he her him his i id in is it it's its i'm mean meant mr mrs ms "
    "named of on one option patient please s she sorry that that's the their them they this use with yes year years "
    "number no nr take pick choose select thanks list choice".split()
)


MONTHS = frozenset(month.casefold() for month in month_name if month)
OLDER, YOUNGER = frozenset(["older", "oldest", "elder", "old", "elderly"]), frozenset(["younger", "youngest", "young"])
DESCRIBED = 8  # words of a description


def read_answer(text: str, clarification: Clarification) -> str | None:
    """The id of the option that an answer means, or None if it means none of them, or more than one.

    Understood: the id, a name in full, a part of it that only one option has, a name with a typo, a place in the list
    ("the second one", "2", "last"), a date or year of birth, "yes" to a single option. "The older one" is not guessed.
    """
    options, words = clarification["options"], plain(text).replace("#", " ").split()
    if not words or not options or len(words) > MAX_WORDS:
        return None
    if by_id := [item["id"] for item in options if plain(item["id"]) in words]:
        return _only(by_id)
    if len(options) == 1 and set(words) <= YES | FILLER and set(words) & YES:
        return options[0]["id"]
    rest = [word for word in words if word not in FILLER or word == "one"]
    if (place := _place(rest, len(options))) is not None:
        return options[place]["id"]
    if by_birth := _by_birth(text, words, options):
        return by_birth
    spelt = _by_name(words, options) if "a" in words else None  # an initial, not an article: "james a wilson"
    return spelt or _by_name([word for word in rest if word != "one"], options)


def described(text: str, clarification: Clarification, charts: dict[str, dict[str, Any]]) -> str | None:
    """The id of the one option whose chart has what a short answer says: "the older one with AF"."""
    words = [word for word in plain(text).split() if word not in FILLER]
    ages = [word for word in words if word in OLDER | YOUNGER]
    if not words or len(words) > DESCRIBED or not charts:
        return None
    telling = [word for word in words if any(_in_chart(word, chart) for chart in charts.values())]
    fitting = {option: chart for option, chart in charts.items() if all(_in_chart(word, chart) for word in telling)}
    if telling and len(fitting) == 1:
        return next(iter(fitting))
    born = {option: chart["patient"]["birth_date"] for option, chart in fitting.items()}
    if not ages or not born or len(set(born.values())) < len(born):
        return None
    return (min if ages[0] in OLDER else max)(born, key=born.__getitem__)


def _in_chart(word: str, chart: dict[str, Any]) -> bool:
    """Whether a medicine or a problem of the chart is called so, by a synonym of `data/clinical` too."""
    entries = [item["name"] for item in [*chart["medications"], *chart["conditions"]] if item["active"]]
    synonyms = [entry["chart"] for entry in clinical("problems")["problems"] if word in entry["chart"]]
    return any(names([word], name) or any(names(said, name) for said in synonyms) for name in entries)


def read_missing(request: Request, clarification: Clarification, ask: str) -> dict[str, Any]:
    """The missing arguments that a message supplies; {} if it is a new question.

    Args:
        request: the message as read.
        clarification: what was asked for.
        ask: the ask that its tool serves; a message with another one is a question of its own.
    """
    if set(request["asks"]) - {ask, "fix", "find", "ok", "gk", "chat", "oos", "demo", "chart"}:
        return {}
    details, missing = request["details"], list(clarification["missing"])
    order = request["orders"][0] if request["orders"] else None
    said: dict[str, Any] = {
        "patient_id": request["patients"][0]["id"] if request["patients"] else "",
        "dosage": (order or {}).get("dose") or details.get("dose", ""),
        "frequency": (order or {}).get("frequency") or details.get("frequency", ""),
        "drug_names": [drug["name"] for drug in request["drugs"]],
    }
    found = {field: said[field] for field in missing if said.get(field)}
    if "drug_names" in found:
        before = [str(item) for item in clarification["args"].get("drug_names") or []]
        found["drug_names"] = list(dict.fromkeys([*before, *found["drug_names"]]))
    left = [field for field in missing if field not in said]
    if len(left) == 1 and not found and len(plain(request["said"]).split()) <= MAX_WORDS:
        found[left[0]] = request["said"].strip(" .")
    return found


def _place(words: list[str], count: int) -> int | None:
    """A place in the list: "second", "2", "last"; "the one" points at nothing."""
    if len(words) == 2 and words[1] == "one":
        words = words[:1]
    if len(words) != 1 or words == ["one"]:
        return None
    if words[0] in ("last", "final"):
        return count - 1
    place = ORDINALS.get(words[0])
    return place if place is not None and place < count else None


def _by_birth(text: str, words: list[str], options: list[Option]) -> str | None:
    """By date of birth, or its year; a name said beside it must fit as well."""
    given = {day for birth in read_births(text) for day in birth.days if len(day) == 10}
    ages = {day for birth in read_births(text) if birth.kind == "age" for day in birth.days}
    spelt = {word for word in words if len(word) == 4 and word[:2] in ("19", "20") and word.isdigit()}
    short = {word for word in words if len(word) == 2 and word.isdigit()}
    spelt |= {
        part
        for item in options
        for part in item["label"].replace("-", " ").split()
        if len(part) == 4 and part[2:] in short
    }
    years = set() if given else ages | spelt
    name = {word for word in words if word.isalpha() and len(word) > 3 and word not in FILLER | MONTHS}
    if not given:  # "the 85 lady": only what is part of a name here has to fit
        name &= {part for item in options for part in plain(item["label"]).replace(",", " ").split()}
    fitting = [
        item["id"] for item in options
        if any(day in item["label"] for day in given) or years & {part[:4] for part in item["label"].split()}
    ]  # fmt: skip
    named = [item["id"] for item in options if name <= set(plain(item["label"]).replace(",", " ").split())]
    return _only(option for option in fitting if option in named)


def _by_name(words: list[str], options: list[Option]) -> str | None:
    if not words:
        return None
    labels = {item["id"]: plain(item["label"]).replace("'", "").split() for item in options}
    wanted = [word.removesuffix("'s").replace("'", "") for word in words]
    exact = [
        option
        for option, label in labels.items()
        if label[: len(wanted)] == wanted and _name_length(options, option) == len(wanted)
    ]
    part = exact or [option for option, label in labels.items() if set(wanted) <= set(label)]
    if part:
        return _only(part)
    said = " ".join(wanted)
    scores = sorted(
        ((fuzz.partial_ratio(said, " ".join(label)), option) for option, label in labels.items()), reverse=True
    )
    if len(said) < 4 or scores[0][0] < TYPO_SCORE:
        return None
    return scores[0][1] if len(scores) == 1 or scores[0][0] - scores[1][0] >= TYPO_LEAD else None


def _name_length(options: list[Option], option: str) -> int:
    label = next(item["label"] for item in options if item["id"] == option)
    return len(plain(label.split(",")[0]).split())


def _only(ids: Iterable[str]) -> str | None:
    found = list(dict.fromkeys(ids))
    return found[0] if len(found) == 1 else None
