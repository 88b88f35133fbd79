"""Hold the medicines that a message tells with their doses, a letter or a list, against the record. Pure."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from docgemma.reading.labels import TOPICS
from docgemma.rules.chart_entries import Line, lines_of
from docgemma.rules.drug_classes import classes_said
from docgemma.rules.order_check import MODERATE, check_order_allergies
from docgemma.rules.typed import CHECK, EDGES, YOU_WROTE
from docgemma.state import Request
from docgemma.text.drugs import DrugNames, ingredients
from docgemma.text.frequency import times_per_day
from docgemma.text.numbers import quantities
from docgemma.text.words import clinical, listed, plain

WEEKLY = " A weekly medicine taken daily is an overdose (methotrexate: deaths): find out today how much was taken."
RARE = 0.2  # times a day, of what is weekly
NEAR = 2  # words between a drug and its dose
ENDS = ("\n", ";", " / ", ". ", ", ", "?")  # of what is told of a drug


class Told(NamedTuple):
    """A medicine of a message: `how`, what is told of it; `taken`, the active entries of it."""

    said: str
    how: str
    taken: list[Line]


def medicine_lines(request: Request, chart: Mapping[str, Any], drugs: DrugNames) -> list[str]:
    """Each medicine that is told with another dose or frequency than recorded; of a list what only one of both has. Of
    one drug in a question of the chart the frequency alone."""
    active = [line for line in lines_of(dict(chart), "meds") if line.item["active"]]
    named = list(_told(request, active, drugs))
    told = [one for one in named if _rate(one.how) or (_dose(one.how) and len(named) > 1)]
    known = [one for one in told if one.taken]
    compared = bool(listed("request_words", "comparing") & set(plain(request["said"]).split())) and len(told) > 1
    said_off = [one for one in named if one.taken and _denied(request["said"], one.said)]
    denied = [f"{YOU_WROTE} that {one.said} is not taken; the record has: {_held(one)}. {CHECK}" for one in said_off]
    classes = [] if request["drugs"] or "may" not in request["asks"] else classes_said(request["said"], drugs)
    judged = [item for name in classes for item in check_order_allergies(name, chart["allergies"], drugs)]
    met = [item.text for item in judged if item.rank <= MODERATE]
    asked = len(named) == len(known) == 1 and set(request["asks"]) <= set(TOPICS)
    if len(request["patients"]) > 1 or not (asked or len(known) > 1 or (known and compared)):
        return [*denied, *met]
    lines = [*denied, *met, *(_otherwise(one) for one in known if not _same(one))]
    new = [one.said for one in told if not one.taken]
    alike = [one.said for one in known if _same(one)] if len(told) > 1 else []
    lacking = [line.short.rstrip(".") for line in active if not any(line in one.taken for one in named)]
    lines += [f"{YOU_WROTE} what is not among the active medicines: {', '.join(new)}."] if new else []
    lines += [f"Recorded as you wrote: {', '.join(alike)}."] if alike else []
    return [*lines, *([f"Recorded, and not in your list: {'; '.join(lacking)}."] if lacking and compared else [])]


def _denied(said: str, drug: str) -> bool:
    """Whether a message states that a drug is not taken: "he isn't on metformin", no question of it."""
    before, _, after = said.partition(drug)
    ends = tuple(f" {phrase}" for phrase in listed("telling", "not_taking"))
    return plain(before).endswith(ends) and after[:1] != "?"


def _told(request: Request, active: list[Line], drugs: DrugNames) -> Iterator[Told]:
    """The drugs of a message that it does not order, in its order, each with what stands behind it."""
    said, ordered = request["said"], {order["said"] for order in request["orders"] if request["meant"] == "ordered"}
    named = [drug for drug in request["drugs"] if drug["how"] != "group" and drug["said"] in said]
    named.sort(key=lambda drug: said.index(drug["said"]))
    for drug, after in zip(named, [*named[1:], None], strict=False):
        how = said.partition(drug["said"])[2]
        for end in (*ENDS, *([after["said"]] if after else [])):
            how = how.partition(end)[0]
        parts = ingredients(drug["name"], drugs)
        if drug["said"] not in ordered:
            taken = [line for line in active if parts & ingredients(line.name, drugs)]
            yield Told(drug["said"], how.strip(" -" + EDGES), taken)


def _dose(how: str) -> str:
    """The number at the beginning of what is told, with its unit."""
    words = how.split()
    at = next((at for at, word in enumerate(words[:NEAR]) if word[0].isdigit()), None)
    return "" if at is None else " ".join(words[at : at + 2])


def _rate(how: str) -> Decimal | None:
    """Times a day; "op on mon" is no weekly dose."""
    weekdays = {day for names in clinical("sig")["weekdays"] for day in names}
    return times_per_day(" ".join(word for word in how.split() if plain(word) not in weekdays))


def _same(one: Told) -> bool:
    """Whether an entry has the dose and the frequency, so far as both are told."""
    said, rate = quantities(_dose(one.how))[:1], _rate(one.how)
    for line in one.taken:
        held = str(line.item["dosage"])
        numbers = [word for part in held.split() for word in part.split("/") if word.replace(".", "", 1).isdigit()]
        amounts = [item.value for item in quantities(held)] if said and said[0].unit else [*map(Decimal, numbers)]
        often = times_per_day(held)
        if (not said or not amounts or said[0].value in amounts) and (not rate or not often or rate == often):
            return True
    return False


def _otherwise(one: Told) -> str:
    often = [rate for line in one.taken if (rate := times_per_day(line.item["dosage"])) is not None]
    overdose = often and min(often) < RARE and (_rate(one.how) or 0) >= 1
    return f"{YOU_WROTE} {one.said} {one.how}; the record has: {_held(one)}.{WEEKLY if overdose else ''}"


def _held(one: Told) -> str:
    return "; ".join(line.short.rstrip(".") for line in one.taken)
