"""State a drug's maximum doses for a person of a given age and weight, computed from the rows per kg. Pure."""

from docgemma.rules.dose_rows import (
    Order,
    Row,
    Rows,
    fitting_rows,
    limit_of,
    narrower,
    route_of,
    told_amount,
    usual_route,
)
from docgemma.rules.patient_state import WRITTEN, PatientState, told_of_adults

CHILD_KG = 40  # below this weight, where no age is given, the rows of children are meant
CHILD_AGE = 12
HEALTHY = 90  # eGFR from which kidney function is normal (KDIGO G1)
WHOM = {"form": "{}", "for": "for {}", "age_from": "{} years and older", "age_below": "below {} years",
        "egfr_below": "eGFR below {}", "weight_below_kg": "below {} kg"}  # fmt: skip
MAXIMA = {"max_day": "a day", "max_single": "in one dose"}
LIMITS = {*MAXIMA, *(f"{key}_per_kg" for key in MAXIMA)}


def maxima_for(rows: Rows, patient: PatientState, said: str, child: bool) -> list[str]:
    """The maxima of the rows that fit: "oral, below 12 years, at 20 kg: 800 mg a day (40 mg/kg), 200 mg in one dose
    (10 mg/kg)", then what impaired kidneys would limit further; [] where neither age, weight, kidney function nor a
    condition of the rows is known. The route and indication that the question says choose rows."""
    order = Order("", "", "", said, None, None, patient)
    known = patient.age is not None or patient.weight is not None or patient.kidneys() or child
    if not known and not any(order.is_for(row["for"]) for row in rows if "for" in row):
        return []
    route = usual_route(rows, said)
    mine = told_of_adults([row for row in rows if row.get("route", route) == route], patient, child)
    mine = [row for row in mine if LIMITS & set(row)]
    small = child or (patient.weight is not None and patient.weight < CHILD_KG)
    if patient.age is None and small:
        chosen = [row for row in mine if row.get("age_below", 0) >= CHILD_AGE]
    else:
        chosen = fitting_rows(mine, order)
    light = [row for row in rows if "weight_below_kg" in row and row not in mine and patient.weight is not None]
    chosen += [row for row in light if not route_of(said) and patient.weight < row["weight_below_kg"]]
    narrowest = [
        row for row in chosen
        if not any(row.get("route") == other.get("route") and narrower(other, row) and not narrower(row, other)
                   for other in chosen)
    ]  # fmt: skip
    kidneys = patient.kidneys()
    healthy = kidneys and kidneys[0] >= HEALTHY and WRITTEN not in kidneys[1]  # what is for worse ones is not told
    if not small and not healthy and not any({"egfr_below", "age_below"} & set(row) for row in chosen):
        narrowest += [row for row in mine if "egfr_below" in row and not {"for", "form", "age_below"} & set(row)]
    told: dict[str, str] = {}
    for text in (told_row(row, row.get("route", route), patient) for row in narrowest):
        told.setdefault(text.partition(": ")[2] if ", for " in text else text, text)  # of one limit one condition
    return list(told.values())


def told_row(row: Row, route: str, patient: PatientState) -> str:
    """One row in words: whom it is for, and its maxima; those of a weekly drug are of a week."""
    whom = [route, *(words.format(row[key]) for key, words in WHOM.items() if key in row)]
    kidneys = patient.kidneys(row.get("by_egfr", False))
    fits = kidneys and kidneys[0] < row.get("egfr_below", 0) and WRITTEN not in kidneys[1]
    whom += [f"here {kidneys[1].removeprefix('latest ')}"] if kidneys and fits else []
    whom += [f"at {patient.weight:g} kg"] if patient.weight and any("per_kg" in key for key in row) else []
    most = []
    for key in MAXIMA:
        per_kg = row.get(f"{key}_per_kg")
        if limit := limit_of(row, key, patient):
            fixed = "" if not per_kg or not patient.weight else f" ({per_kg}/kg)"
            said = row.get(key, "mg") if not fixed else "mg"  # "17 g" and "300 mcg" stay as the row has them
            most.append(f"{told_amount(limit) if said.endswith('mg') else said} {_each(row, key)}{fixed}")
        if per_kg and not patient.weight:
            most.append(f"{per_kg}/kg {_each(row, key)}")
    note = f" ({row['note']})" if "note" in row else ""
    return f"{', '.join(filter(None, whom))}: {', '.join(dict.fromkeys(most))}{note}"


def _each(row: Row, key: str) -> str:
    """What a maximum is of: a day, one dose, one dose a week or in so many days."""
    days = row.get("interval_days") if "interval_from" not in row else None
    if row.get("weekly"):
        return "once a week"
    return f"in one dose, every {days} days" if days and key == "max_single" else MAXIMA[key]
