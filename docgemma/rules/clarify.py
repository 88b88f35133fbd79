"""Ask back where only a person can go on, and read the answer: the option meant, or the missing values. Pure."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from docgemma.errors import ErrorType
from docgemma.rules.described import excludes, telling, unsettled
from docgemma.state import Clarification, Option, PatientRef, Request, ToolResult
from docgemma.text.births import read_births
from docgemma.text.clauses import fillers
from docgemma.text.frequency import times_per_day
from docgemma.text.numbers import NUMBER_WORDS
from docgemma.text.words import begun_with, listed, names, plain

MAX_WORDS = 40  # an answer; what is longer is a new question
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
YES = frozenset("yes yep yeah yup correct right exactly sure ok okay affirmative confirmed him her that's it".split())
SHORT = 10  # words by which it is said how often
SEXES = {"male": "female", "female": "male"}
BESIDE = frozenset({"fix", "find", "ok", "gk", "chat", "oos", "demo", "chart"})  # asks of an answer that gives a value


def ask_back(result: ToolResult) -> Clarification | None:
    """The question to the clinician, where only a person can go on. `missing` names the arguments it fills."""
    details, args = result.get("details") or {}, result["args"]
    drug = [key for key in args if key in ("drug_name", "drug_names", "medication_name")]
    suggested = [{"id": name, "label": name} for name in details.get("suggestions") or []]
    asked: dict[str | None, tuple[Literal["patient", "drug", "missing"], Sequence[str], Sequence[Any]]] = {
        ErrorType.MULTIPLE_PATIENT_MATCHES: ("patient", ["patient_id"], details.get("options") or []),
        ErrorType.AMBIGUOUS_DRUG_NAME: ("drug", drug or ["drug_name"], suggested),
        ErrorType.MISSING_REQUIRED_ARGS: ("missing", details.get("missing_fields") or [], []),
    }
    kind, missing, options = asked.get(result["error_type"], ("missing", [], []))
    if not missing:
        return None
    return Clarification(
        kind=kind, question=result["error"] or "", tool=result["tool_name"], args=dict(args), missing=list(missing),
        options=[Option(id=str(item["id"]), label=str(item["label"])) for item in options],
    )  # fmt: skip


def asks_anew(request: Request, clarification: Clarification) -> bool:
    """Whether a message is a request of its own: it names another patient than those asked about, or orders a drug.

    "Paracetamol 1 g for ghi-789" does not say which James Wilson was meant, also where one of them takes paracetamol.
    """
    args, named = clarification["args"], {patient["id"] for patient in request["patients"]}
    meant = {item["id"] for item in clarification["options"]} | {args.get("patient_id") or ""} - {""}
    if named and meant and not named & meant:
        return True
    asked_for = plain(str(args.get("medication_name") or ""))
    others = [one for one in request["orders"] if plain(one["drug"]) != asked_for and (asked_for or one["dose"])]
    return bool(others) and request["meant"] == "ordered" and clarification["kind"] != "drug"


def read_answer(text: str, clarification: Clarification) -> str | None:
    """The id of the option that an answer means, or None if it means none of them, or more than one.

    Understood: the id, a name in full, a part of it that only one option has, a place in the list ("the second one",
    "2", "last"), a date or year of birth, "yes" to a single option. "The older one" and "not the 1949 one" are not
    guessed.
    """
    words, ids = plain(text).split(), [item["id"] for item in clarification["options"]]
    if not words or not ids or len(words) > MAX_WORDS or excludes(text):
        return None
    if by_id := [option for option in ids if plain(option) in words]:
        return _only(by_id)
    if len(ids) == 1 and not telling(" ".join(set(words) - YES)) and set(words) & YES:
        return ids[0]
    if place := _place(telling(text) or words[-1:], len(ids)):
        return ids[place - 1]
    labels = {item["id"]: plain(item["label"]).replace("'", "") for item in clarification["options"]}
    if len(sexes := sexes_in(text)) == 1 and not telling(text):  # "the lady"
        return _only([option for option in ids if sexes <= {*labels[option].split()}])
    named = {item["id"]: plain(item["label"].split(",")[0]).split() for item in clarification["options"]}
    for said in (words, telling(text)):  # with "a", which may be an initial: "james a wilson"
        if in_full := [option for option in ids if named[option] == said]:
            return _only(in_full)
    return _by_parts(text, labels)


def takes_back(more: str, clarification: Clarification) -> bool:
    """Whether what stands behind a choice unsettles it: "the 1949 one, no wait", "the 1949 one, or 1985?"."""
    days = [day for birth in read_births(more) for day in birth.days]
    return unsettled(more) or any(f"born {day}" in item["label"] for day in days for item in clarification["options"])


def _by_parts(text: str, labels: dict[str, str]) -> str | None:
    """By a part of a name, a date or year of birth, or both."""
    births = read_births(text)
    days = {day for birth in births for day in birth.days}
    for birth in reversed(births):
        text = f"{text[: birth.start]} {text[birth.end :]}"
    left = telling(text)
    fitting = [
        option
        for option, label in labels.items()
        if set(left) <= {*label.split(), label[-8:-6]}  # "the 71 one"
        and (not days or any(label.split()[-1].startswith(day) for day in days))
    ]
    return _only(fitting) if left or days else None


def read_missing(request: Request, clarification: Clarification, ask: str) -> dict[str, Any]:
    """The missing arguments that a message supplies; {} if it is a new question."""
    order: Mapping[str, Any] = request["orders"][0] if request["orders"] else {}
    dose = order.get("dose") or request["details"].get("dose")
    often = _often(request, order, dose or "")
    once = "frequency" in clarification["missing"] and times_per_day(often) == 0  # "just once"
    if set(request["asks"]) - {ask, *BESIDE} and not once:
        return {}
    people, drugs = request["patients"][:1], [drug["name"] for drug in request["drugs"]]
    before = [str(item) for item in clarification["args"].get("drug_names") or []] if drugs else []
    said: dict[str, Any] = {"patient_id": "".join(one["id"] for one in people), "dosage": dose, "frequency": often}
    said |= {"drug_names": list(dict.fromkeys([*before, *drugs]))}
    told = request["details"]
    if told.get("severity") and told.get("reaction") and "reaction" in clarification["missing"]:  # "hives, mild"
        return {"reaction": told["reaction"], "severity": told["severity"]}
    fields, named = clarification["missing"], [order.get("said"), *(drug["said"] for drug in request["drugs"])]
    if "medication_name" in fields and (called := next(filter(None, named), "")):
        said, fields = said | {"medication_name": called}, [*fields, "dosage", "frequency"]
    found = {field: said[field] for field in fields if said.get(field)}
    if found.keys() & {"dosage", "frequency"}:  # "tds for 7 days"
        more = [(order or request["details"]).get(field) for field in ("route", "notes")]
        notes = "; ".join(filter(None, [clarification["args"].get("notes"), *more]))
        found |= {"notes": notes} if notes else {}
    left = [field for field in clarification["missing"] if field not in said]
    if len(left) == 1 and not found and not _asks(request["said"]) and len(plain(request["said"]).split()) <= MAX_WORDS:
        found[left[0]] = request["said"].strip(" .")
    return found


def _asks(said: str) -> bool:
    """Whether a message asks something itself, or what became of an entry: "so what's saved now"; "had hives" is no
    question."""
    entered = names(listed("request_words", "entered"), said) or said.rstrip().endswith("?")
    return entered or (begun_with(plain(said).split()) in listed("request_words", "interrogative"))


def _often(request: Request, order: Mapping[str, Any], dose: str) -> str:
    """How often, as it was read; the answer word for word where it is no whole order and says more or another rate:
    "every 12 hours" is not "every"."""
    read, text = order.get("frequency") or request["details"].get("frequency") or "", request["said"]
    for part in filter(None, (dose, order.get("said"))):
        text = text.replace(part, " ")
    words = text.strip(" ,.").split()
    while words and plain(words[0]) in fillers():
        words.pop(0)
    while words and plain(words[-1]) in fillers():
        words.pop()
    text = " ".join(words or text.split())
    rate, whole = times_per_day(text), bool(order or request["details"].get("notes"))
    once = plain(text) in listed("sig", "once")
    if rate is None or (not rate and not once) or (whole and rate == times_per_day(read)) or len(words) > SHORT:
        return read
    return text


def other_sex(message: str, sex: str, name: str = "", note: bool = False) -> set[str]:
    """The words by which a message speaks of a patient as of the other sex: "mr" of "mr kamau". Of one who is named,
    no pronoun that may be a relative's or a colleague's, or stands in a `note`."""
    if sex not in SEXES:
        return set()
    before = plain(message.partition(name)[0]).split() if name else []
    title = set(before[-1:]) & listed("request_words", f"{SEXES[sex]} titles")
    words = set(plain(message).replace("'s", "").split())
    own = listed("request_words", sex) | (listed("request_words", "others") if name else set())
    return title or (set() if note or words & own else words & listed("request_words", SEXES[sex]))


def sexes_in(said: str) -> set[str]:
    """The sexes that a message speaks of: "her" and "the lady" are female."""
    words = set(plain(said).replace("'s", "").split())
    return {sex for sex in SEXES if listed("request_words", sex) & words}


def among(said: str, people: Sequence[PatientRef], things: bool) -> list[PatientRef]:
    """Those of the patients of one turn whom a message may mean by a pronoun or a place: "him", "the second lady"; all
    where nothing tells them apart. `things`: "the first one" may be a drug."""
    words, gendered, sexes = plain(said).replace("'s", "").split(), listed("request_words", *SEXES), sexes_in(said)
    fitting = [one for one in people if len(sexes) != 1 or one["sex"] in sexes]
    for word, noun in pairwise(words):
        at = 0 if word.isdecimal() or noun not in listed("request_words", "people") else _place([word], len(people))
        if at and not (things and noun == "one"):
            rows = [people, *([fitting] if noun in gendered else [])]  # "the second lady" is of all, or of the ladies
            placed = {row[at - 1]["id"] for row in rows if at <= len(row)}
            return [one for one in fitting if one["id"] in placed]
    return fitting


def _place(words: list[str], count: int) -> int:
    """A place in the list, from 1: "second", "2", "2nd", "last"; 0 for none: "the one" points at nothing."""
    word = words[0] if len(words) == 1 else ""
    if word in ("last", "final"):
        return count
    digits = word.rstrip("stndrh")
    place = int(digits) if digits.isdecimal() else NUMBER_WORDS.get(word, 0)
    place = ORDINALS.index(word) + 1 if word in ORDINALS else place
    return place if 0 < place <= count and word != "one" else 0


def _only(ids: list[str]) -> str | None:
    return ids[0] if len(ids) == 1 else None
