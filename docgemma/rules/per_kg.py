"""Work out doses by body weight: what is taken in mg/kg, and what a rate per kg comes to. Pure."""

from collections.abc import Collection, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from docgemma.reading.terms import measure_named
from docgemma.rules.chart_entries import lines_of, result_told
from docgemma.rules.derived import ideal_weight
from docgemma.rules.patient_state import as_told, patient_state
from docgemma.text.frequency import times_per_day
from docgemma.text.numbers import quantities
from docgemma.text.words import names

NO_WEIGHT = "No body weight in kg is recorded, so no dose per kg was worked out."
NOT_A_DOSE = "A rate per kg and minute or hour is not worked out here."
OBESE = Decimal("1.2")  # times the ideal body weight
WHICH = "Which weight a drug is dosed by stands in its label."
RATES, DAILY = ("min", "minute", "h", "hr", "hour"), ("day", "d", "daily", "24h")


def asks_per_kg(said: str) -> bool:
    """Whether a message speaks of a dose per kg: "mg per kg per day?", "90/kg/day"."""
    return "/kg" in said.casefold().replace("per ", "/").replace(" ", "")


def per_kg_lines(said: str, chart: Mapping[str, Any], drugs: Collection[str] = ()) -> list[str]:
    """What a rate per kg that is said comes to, else what is taken, of these `drugs` where some are named, in mg/kg:
    "800 mg twice daily is 1,600 mg a day: about 76.2 mg/kg a day at 21 kg"."""
    if not asks_per_kg(said):
        return []
    weights = [line for line in lines_of(dict(chart), "vit") if measure_named(line.name) == "weight"][:1]
    known = [line for line in weights if line.item.get("unit") == "kg"]
    source = "".join(result_told(line, date.today()) for line in known)
    patient = patient_state(chart, date.today())
    weight = as_told(said, patient).weight
    if weight and weight != patient.weight:
        kg, source = round(Decimal(weight), 1).normalize(), f"the weight as you wrote it (recorded: {source or 'none'})"
    elif known:
        kg = Decimal(str(known[0].item["value"]))
    else:
        return [NO_WEIGHT]
    text = said.casefold().replace("per ", "/").replace(" /", "/")
    at = f"{kg:f} kg. Worked out from {source}; not held against a label."
    given = quantities(text.replace(" mg/", "/").replace("mg/", "/").replace("/kg", " mg/kg"))  # "90/kg/day"
    behind = [word for word in text.partition("kg")[2].replace("/", " ").split() if word not in ("a", "each", "every")]
    timed = behind[0].strip(",.?") if behind else ""
    if timed in RATES:
        return [NOT_A_DOSE]
    if rates := [item.value for item in given if item.unit == "mg/kg"]:
        daily, often = timed in DAILY, times_per_day(said.replace("/day", "")) or Decimal(1)
        dose = rates[0] * kg / (often if daily else 1)
        told = [f"{_mg(dose)} a dose"] if not daily or often > 1 else []
        told += [f"{_mg(dose * often)} a day"] if daily or often > 1 else []
        worked = f"{rates[0]:f} mg/kg{' a day' if daily else ''} is {', '.join(told)} at {at}"
        return [worked, *_at_ideal_weight(dose / kg, kg, chart)]
    lines: list[str] = []
    taken = [line for line in lines_of(dict(chart), "meds") if line.item["active"] and "mg" in text]
    for line in [line for line in taken if names(drugs, line.name)] or taken:
        dosage = str(line.item["dosage"])
        doses, rate = [item.value for item in quantities(dosage) if item.unit == "mg"], times_per_day(dosage)
        if doses and rate and "mcg" not in dosage:
            day = f"{_mg(doses[0] * rate)} a day: about {doses[0] * rate / kg:.1f} mg/kg a day"
            lines.append(f"{line.name} {dosage} is {day}, {doses[0] / kg:.1f} mg/kg a dose, at {at}")
    return lines


def _at_ideal_weight(rate: Decimal, kg: Decimal, chart: Mapping[str, Any]) -> list[str]:
    """The same dose by ideal body weight, where the recorded weight lies more than a fifth above it."""
    ideal = round(ideal_weight(patient_state(chart, date.today())) or 0)
    if not ideal or kg <= ideal * OBESE:
        return []
    return [f"By the ideal body weight, {ideal} kg (Devine), it would be {_mg(rate * ideal)} a dose. {WHICH}"]


def _mg(value: Decimal) -> str:
    return f"{round(value, 1).normalize():,f} mg"
