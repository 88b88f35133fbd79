"""State a drug's maximum doses for a person of a given age and weight, computed from the rows per kg. Pure."""

from collections.abc import Iterable
from decimal import Decimal
from itertools import pairwise
from math import inf

from docgemma.reading.drugs import said_for
from docgemma.rules.dose_rows import (
    Amount,
    Order,
    Row,
    Rows,
    fitting_rows,
    limit_of,
    outdone,
    route_of,
    told_amount,
    usual_route,
)
from docgemma.rules.patient_state import CHILD_KG, WRITTEN, PatientState, told_of_adults
from docgemma.text.numbers import quantities
from docgemma.text.words import listed, plain

CHILD_AGE = 12
SPOON = 5  # mL
HEAVY = 100  # kg; above it many doses per kg are capped
POURED = {"oral", "injection", "intrathecal", "rectal"}  # routes of which a strength in per cent is g in 100 mL
HEALTHY = 90  # eGFR from which kidney function is normal (KDIGO G1)
WHOM = {"form": "{}", "for": "for {}", "age_from": "{} years and older", "age_below": "below {} years",
        "egfr_below": "eGFR below {}", "weight_below_kg": "below {} kg"}  # fmt: skip
MAXIMA = {"max_day": "a day", "max_single": "in one dose"}
LIMITS = {*MAXIMA, *(f"{key}_per_kg" for key in MAXIMA)}


def maxima_for(rows: Rows, patient: PatientState, said: str, child: bool, meant: str = "") -> list[str]:
    """The maxima of the rows that fit: "oral, below 12 years, at 20 kg: 800 mg a day (40 mg/kg), 200 mg in one dose
    (10 mg/kg)", then what impaired kidneys would limit further; [] where neither age, weight, kidney function nor a
    condition of the rows is known. The route and indication that the question says choose rows; `meant`: what more it
    is about."""
    order = Order("", "", "", f"{said} {meant}", None, None, patient)
    words, short = {*plain(said).split()}, said_for("abbreviations")
    words |= {short[word]["name"] for word in words & short.keys()}
    bounds = ("age_from", "weight_below_kg", "form")  # "over 65 or under 50 kilos", "plain vs w epi"
    bound = [row for row in rows if LIMITS & set(row) and words & {str(row.get(key)) for key in bounds}]
    known = patient.age is not None or patient.weight is not None or patient.kidneys() or child
    known = known or any({"weight_below_kg", "form"} & set(row) for row in bound)
    if not known and not any(order.is_for(row["for"]) for row in rows if "for" in row):
        return []
    routes = {row.get("route") for row in rows}
    route = usual_route(rows, said if route_of(said) in routes else "")  # "prednisolone and nebs"
    mine = told_of_adults([row for row in rows if row.get("route", route) == route], patient, child)
    mine = [row for row in mine if LIMITS & set(row)]
    small = child or (patient.weight is not None and patient.weight < CHILD_KG)
    young = [row for row in mine if row.get("age_below", 0) >= CHILD_AGE]
    if patient.age is None and small and young:
        told = [row for row in young if "for" in row and order.fits(row)]
        chosen = told or [row for row in young if not {"for", "form"} & set(row) or order.fits(row)] or young
    else:
        chosen = fitting_rows(mine, order)
    elsewhere = [row for row in rows if row.get("route", route) != route and LIMITS & set(row) and not route_of(said)]
    if not any(order.is_for(row.get("for", "")) for row in mine):  # "keppra load, status epilepticus"
        chosen = [row for row in fitting_rows(elsewhere, order) if order.is_for(row.get("for", ""))] + chosen
    noted = [(row, row.get("note", "").partition(": ")) for row in elsewhere]  # "malignant hyperthermia: ..."
    chosen += [
        row for row, (why, mark, _) in noted
        if (mark and order.is_for(why)) or (patient.weight or inf) < row.get("weight_below_kg", 0)
    ]  # fmt: skip
    narrowest = [row for row in chosen if not outdone(row, [o for o in chosen if o.get("route") == row.get("route")])]
    told, against = [row.get("for", "") for row in narrowest], plain(said) if " vs " in plain(said) else ""
    named = [said_for("conditions")[word]["name"] for word in against.split() if word in said_for("conditions")]
    if all(told) and any(not any(one in name for one in told) for name in named):  # beside it the general maximum
        narrowest += [row for row in fitting_rows(mine, Order("", "", "", "", None, None, patient)) if "for" not in row]
    kidneys = patient.kidneys()
    healthy = kidneys and kidneys[0] >= HEALTHY and WRITTEN not in kidneys[1]  # what is for worse ones is not told
    if not small and not healthy and not any({"egfr_below", "age_below"} & set(row) for row in chosen):
        narrowest += [row for row in mine if "egfr_below" in row and not {"for", "form", "age_below"} & set(row)]
    first = [row for row in bound if row.get("route", route) == route]
    narrowest = [*first, *(row for row in narrowest if row not in first)]
    poured = {route: strength_in(said)}
    return unlike(told_row(row, row.get("route", route), patient, poured.get(row.get("route"))) for row in narrowest)


def unlike(lines: Iterable[str]) -> list[str]:
    """Rows in words, of the indications of one limit the first: "oral, for pain: 4 g a day"."""
    told: dict[str, str] = {}
    for text in lines:
        whom, _, most = text.partition(": ")
        told.setdefault(f"{whom.partition(', for ')[0]}: {most}" if ", for " in whom else text, text)
    return list(told.values())


def strength_in(said: str) -> Amount | None:
    """The one strength that is told, in mg per mL: "1 %" is 10, "120mg/5ml" is 24; "1:1000" is 1 where no other is."""
    text = said.casefold().replace(" per ", "/").replace("/ml", "/1ml").replace("/ ml", "/1ml")
    found = {item.value * 10 for item in quantities(text) if item.unit == "%"}
    for before, behind in pairwise(text.split("/")):
        drug, volume = quantities(before)[-1:], quantities(behind)[:1]
        units = (drug[0].unit, volume[0].unit) if drug and volume else ()
        spoon = (
            units == ("", "") and volume[0].value == SPOON and listed("drug_words", "liquids") & {*plain(said).split()}
        )
        if (units == ("mg", "ml") and volume[0].value) or spoon:  # "susp 100/5"
            found.add(drug[0].value / volume[0].value)
    split = (word.strip(",.;?()").partition(":") for word in text.replace(",", "").split())
    ratios = {Decimal(1000) / int(many) for one, _, many in split if one == "1" and many.isdecimal() and int(many)}
    strengths = found or ratios
    return (strengths.pop(), "mg/mL") if len(strengths) == 1 else None


def _poured(amount: Amount, strength: Amount | None) -> str:
    """A dose as a volume: " = 9.45 mL of 10 mg/mL"."""
    if not strength or amount[1] != "mg" or not strength[0]:
        return ""
    return f" = {round(amount[0] / strength[0], 2).normalize():,f} mL of {told_amount(strength)}"


def _worked(row: Row, patient: PatientState, strength: Amount | None) -> str:
    """The note of a row without limits per kg, its rates worked out: "0.01 mg/kg: 0.21 mg at 21 kg"."""
    note = str(row["note"])
    if not patient.weight or patient.weight > HEAVY or any("per_kg" in key for key in row):
        return note
    parts = []
    for part in note.split("; "):
        rates = [item.value * Decimal(str(patient.weight)) for item in quantities(part) if item.unit == "mg/kg"]
        most = [(value, "mg") for value in sorted({min(rates), max(rates)})] if rates else []
        told = " to ".join(f"{told_amount(amount)}{_poured(amount, strength)}" for amount in most)
        parts.append(f"{part}: {told} at {patient.weight:g} kg" if told else part)
    return "; ".join(parts)


def told_row(row: Row, route: str, patient: PatientState, strength: Amount | None = None) -> str:
    """One row in words: whom it is for, and its maxima; those of a weekly drug are of a week; volumes of a strength."""
    strength = strength if route in POURED else None
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
            said = told_amount(limit) if said.endswith("mg") else said
            most.append(f"{said} {_each(row, key)}{fixed}{_poured(limit, strength)}")
        if per_kg and not patient.weight:
            most.append(f"{per_kg}/kg {_each(row, key)}")
    note = f" ({_worked(row, patient, strength)})" if "note" in row else ""
    return f"{', '.join(filter(None, whom))}: {', '.join(dict.fromkeys(most))}{note}"


def _each(row: Row, key: str) -> str:
    """What a maximum is of: a day, one dose, one dose a week or in so many days."""
    days = row.get("interval_days") if "interval_from" not in row else None
    if row.get("weekly"):
        return "once a week"
    return f"in one dose, every {days} days" if days and key == "max_single" else MAXIMA[key]
