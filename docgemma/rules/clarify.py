"""Ask back where only a person can go on, and read from the answer which option is meant. Pure."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

from docgemma.errors import ErrorType
from docgemma.rules.described import excludes, telling, unsettled
from docgemma.state import Clarification, Option, PatientRef, Request, ToolResult
from docgemma.text.births import age_and_sex, read_births
from docgemma.text.numbers import NUMBER_WORDS
from docgemma.text.words import listed, plain

MAX_WORDS = 40  # an answer; what is longer is a new question
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
YES = frozenset("yes yep yeah yup correct right exactly sure ok okay affirmative confirmed him her that's it".split())
SEXES = {"male": "female", "female": "male"}


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


def other_sex(message: str, sex: str, name: str = "", note: bool = False) -> set[str]:
    """The words by which a message speaks of a patient as of the other sex: "mr" of "mr kamau". Of one who is named,
    no pronoun that may be a relative's or a colleague's, or stands in a `note`."""
    if sex not in SEXES:
        return set()
    before = plain(message.partition(name)[0]).split() if name else []
    title = set(before[-1:]) & listed("request_words", f"{SEXES[sex]} titles")
    words = set(plain(message).replace("'s", "").split())
    own = listed("request_words", sex) | (listed("request_words", "others") if name else set())
    aged = {age_and_sex(message)[1]} & {SEXES[sex]}  # "41F" of a man
    return title or aged or (set() if note or words & own else words & listed("request_words", SEXES[sex]))


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
