"""Compose the card that a person decides: patient, arguments in plain words and as written, findings."""

from datetime import date
from decimal import Decimal
from typing import Any

from docgemma.knowledge.drug_rules import doses_of
from docgemma.nodes.context import Context
from docgemma.reading.drugs import link_drug
from docgemma.rules.dose_rows import Row, route_of
from docgemma.rules.instructions import parts_of
from docgemma.rules.order_check import MODERATE, Finding, shown
from docgemma.rules.override import ranked
from docgemma.rules.patient_state import UNKNOWN, patient_state
from docgemma.schemas import PrescribeMedicationArgs
from docgemma.state import PendingWrite
from docgemma.text.drugs import ingredients
from docgemma.text.durations import duration, timed
from docgemma.text.numbers import NUMBER_WORDS, quantities
from docgemma.text.shorthand import expanded
from docgemma.text.words import clinical, listed, plain
from docgemma.tools.base import Tool
from docgemma.tools.records import chart_data

FIELDS = ("patient_id", *PrescribeMedicationArgs.model_fields)  # in the order of the form, whenever each was said
NOTES = 120  # characters of an order's notes
TABLETS = 4  # the most that are said as a bare number
SWALLOWED, SOLID = {"oral", "injection", "rectal"}, {"mg", "mcg", "mEq"}  # routes and units of drugs that are tablets
LETTERS_OF_UNITS = "abcdefghijklmnopqrstuvwxyzµμ"


def as_card(args: dict[str, Any], context: Context) -> dict[str, dict[str, Any]]:
    """The arguments in plain words, and the original of each that was written otherwise.

    Returns:
        {"args", "original"}: "vanc" becomes vancomycin, "bd" twice daily, "7/7" for 7 days. What is not known stays.
    """
    card = dict(args)
    for name in {"medication_name", "substance"} & set(args):  # a name that the dictionary knows stays as written
        link = link_drug(args[name], context.drugs)
        card[name] = link.name if link.how in ("short", "near") else args[name]
    if "medication_name" in args:
        ordered = clinical("drug_abbreviations")["ordered"]
        card["medication_name"] = ordered.get(plain(args["medication_name"]), card["medication_name"])
        notes = parts_of(args.get("notes") or "")
        card["dosage"] = with_unit(args["dosage"], card["medication_name"], context, args.get("notes") or "")
        card["frequency"] = expanded(args["frequency"], "routes", "frequencies")
        parts = [part for part in notes if not _reckoned_otherwise(part, args, context)]
        told = [duration(part) or timed(expanded(part, "routes", "frequencies")) for part in parts]
        if weighed := _by_weight(args, context):
            card["dosage"], how = weighed
            told += [how] if how not in told and len("; ".join([*told, how])) <= NOTES else []
        if told or notes:
            card["notes"] = "; ".join(dict.fromkeys(told))
    changed = [name for name in args if str(args[name]).casefold() != str(card[name]).casefold()]
    card = {name: card[name] for name in (*FIELDS, *card) if name in card}
    return {"args": card, "original": {name: str(args[name]) for name in changed}}


def pending_write(
    tool: Tool, args: dict[str, Any], original: dict[str, str], judged: list[Finding], context: Context
) -> PendingWrite:
    """What waits for a decision."""
    patient = context.store.patient(args["patient_id"])
    written = original.get("dosage", "").replace("/", "").replace(" ", "")  # "30/500 2"
    if is_bare(written) and not is_bare(args["dosage"]):
        text = f"The dose was written without a unit: {original['dosage']} is taken as {args['dosage']}. Check it."
        judged = [*judged, Finding(MODERATE, text)]
    who = {"id": patient.id, "name": patient.name, "birth_date": patient.birth_date} if patient else {}
    return PendingWrite(
        name=tool.name, label=tool.label, patient=who, args=args, original=original, findings=shown(judged),
        ranked=ranked(judged),
    )  # fmt: skip


def with_unit(dose: str, drug: str, context: Context, said: str = "") -> str:
    """A bare number with the unit of the drug's usual doses, where it is one of them: "protonix 40" is 40 mg; a small
    one that is none, of a drug that is swallowed, as tablets: "sando-K two". `said`: what else the order says."""
    pieces, _, count = dose.rpartition(" ")
    if "/" in pieces and is_bare(pieces.replace("/", "")) and count in ("1", "2"):  # "30/500 2"
        with_opioid = {"acetaminophen"} < ingredients(drug, context.drugs)  # others are insulins and inhalers
        return f"{dose} tablets" if with_opioid else dose
    rows, ranges, units = _usual(drug, said, context)
    if len(units) != 1 or not is_bare(dose):
        return dose
    number = Decimal(NUMBER_WORDS.get(dose.casefold(), dose))
    if any(Decimal(low.partition(" ")[0]) <= number <= Decimal(high.partition(" ")[0]) for low, high in ranges):
        return f"{dose} {units.pop()}" if dose[-1].isdecimal() else dose  # "two" may be tablets
    routes = {row.get("route", "") for row in rows}
    swallowed = "oral" in routes <= SWALLOWED and route_of(said) in ("", "oral") and units <= SOLID
    few = swallowed and number in range(1, TABLETS + 1)
    return f"{number} tablet{'s' * (number > 1)}" if few else dose


def _usual(drug: str, said: str, context: Context) -> tuple[list[Row], list[Any], set[str]]:
    """The dose rows of a drug by the route that is said, or by mouth; the ranges of single doses, and their units."""
    rows: list[Row] = [row for part in ingredients(drug, context.drugs) for row in doses_of(part)]
    route = route_of(said) or ("oral" if any(row.get("route") == "oral" for row in rows) else "")
    rows = [row for row in rows if row.get("route", route) == route] or rows  # "cipro 500" is no eye drop
    ranges = [row["single"] for row in rows if "single" in row]
    return rows, ranges, {end.partition(" ")[2] for ends in ranges for end in ends}


def is_bare(dose: str) -> bool:
    """Whether a dose is a number without a unit."""
    return dose.casefold() in NUMBER_WORDS or dose.replace(".", "", 1).isdecimal()


def _by_weight(args: dict[str, Any], context: Context) -> tuple[str, str] | None:
    """The dose of "5 mg/kg" at the weight of the chart, and how it was found; None without such a dose or a weight.

    The weight is the one that was told, else the recorded one: no ideal or adjusted weight is computed.
    """
    amount = (args.get("dosage") or "").casefold().replace(" ", "").replace("per", "/")
    low, _, high = amount.removesuffix("/kg").replace("–", "-").replace("to", "-").rpartition("-")
    ends = [(end.rstrip(LETTERS_OF_UNITS), end) for end in (low, high) if end]
    if not amount.endswith("/kg") or not all(is_bare(number) for number, _ in ends):
        return None
    stored = context.store.chart(args["patient_id"])
    patient = patient_state(chart_data(stored), date.today()) if stored else UNKNOWN
    notes = parts_of(args.get("notes") or "")
    weights = [part.split()[1:-1] for part in notes if part.startswith("weight ") and part.endswith(" kg")]
    told = "".join(weights[0]) if weights else ""
    if weights and not is_bare(told):
        return None  # "weight 20 or 22 kg"
    if not (told or patient.weight):
        return None
    units = _usual(args["medication_name"], args.get("notes") or "", context)[2]
    unit = ends[-1][1][len(ends[-1][0]) :] or ("".join(units) if len(units) == 1 else "")  # "15/kg"
    if any(end not in (number, number + unit) for number, end in ends):
        return None  # "500 mcg-1 mg/kg"
    recorded = f"{patient.weight:g} kg ({patient.results['weight'][2]})" if patient.weight else "none"
    weight = Decimal(told) if told else Decimal(str(patient.weight))
    most = _maximum(notes, unit)
    totals = [f"{min(Decimal(number) * weight, most):.1f}".removesuffix(".0") for number, _ in ends]
    at = f"{told} kg as told (recorded: {recorded})" if told else recorded
    rate = " to ".join(number for number, _ in ends)
    return f"{' to '.join(dict.fromkeys(totals))} {unit}", f"{rate} {unit}/kg at {at}"


def _reckoned_otherwise(part: str, args: dict[str, Any], context: Context) -> bool:
    """Whether a note says how another dose than the one that stands there was found, "5 mg/kg at 68 kg"."""
    rate, mark, _ = part.partition("/kg at ")
    return bool(mark) and _by_weight({**args, "dosage": f"{rate}/kg"}, context) != (args["dosage"], part)


def _maximum(notes: list[str], unit: str) -> Decimal:
    """The most of one dose that the notes of an order allow, "max 1g", in this unit; none of a day."""
    most = [Decimal("Infinity")]
    for note in notes:
        said, one = quantities(note), quantities(f"1 {unit}")
        words = {*plain(note).split()}
        if words & listed("sig", "maximum") and not words & listed("sig", "of_a_day", "of_longer") and "/" not in note:
            most += [item.value / one[0].value for item in said if one and item.unit == one[0].unit]
    return min(most)
