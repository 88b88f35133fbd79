"""Hold a drug's coded contraindications and warnings against the patient. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from operator import ge, gt, lt
from typing import Any

from docgemma.rules.order_check import CONTRAINDICATED, MAJOR, RANKS, UNCHECKED, Finding
from docgemma.rules.patient_state import WRITTEN, PatientState
from docgemma.text.quoted import NOT_VERIFIED
from docgemma.text.words import names, plain

Row = Mapping[str, Any]
HEADS = {CONTRAINDICATED: "Contraindicated", MAJOR: "Warning"}
UNNOTICED = 20  # weeks up to which a pregnancy may not be known
BEYOND = {"below": lt, "from": ge, "above": gt}
LACKING = {  # an adult without a weight is none of the small ones that its rows are for
    "age": "?age (no birth date is recorded)",
    "egfr": "?kidney function (no eGFR is recorded)",
    "clearance": "?creatinine clearance (creatinine, weight or age is not recorded)",
}


def check_conditions(
    drug: str, rows: Iterable[Row], patient: PatientState, route: str, order: str = ""
) -> list[Finding]:
    """Tell which rows of `data/knowledge/conditions.jsonl` fit this patient; the route is "" if none is said."""
    found: dict[tuple[str, str], Finding] = {}
    unknown: list[str] = []
    rows = sorted(rows, key=lambda row: _reach(row["when"]))  # of one rank the narrowest one counts
    for row in [*rows, *_unasked(rows, patient)]:
        told = [_fits(key, value, patient, route, order) for key, value in row["when"].items()]
        reasons = [reason for reason in told if reason is not None]
        lacking = [reason[1:] for reason in reasons if reason.startswith("?")]
        if len(reasons) < len(told) or lacking:
            unknown += lacking if len(reasons) == len(told) else []
            continue
        noted = [quoted for _, quoted, bears in patient.noted if names(bears, row["says"])]
        reasons += [quoted for quoted in noted if not any(quoted in reason for reason in reasons)]
        over = patient.ended and any(patient.ended in reason for reason in reasons)  # a pregnancy that may be
        rank = max(RANKS[row["rank"]], MAJOR if over else 0)
        why = "; ".join(dict.fromkeys(filter(None, reasons)))
        line = f"{HEADS.get(rank, 'Caution')} ({drug}): {row['says']}. {why[:1].upper()}{why[1:]}."
        one = why, row["when"].get("problem", "")  # "Gestational diabetes" is pregnancy and diabetes
        if one not in found or found[one].rank > rank:  # of one reason the gravest line
            first = f"{why.replace(': ', ' ', 1)}: {row['says']}."
            found[one] = Finding(rank, line, first, row.get("basis", {}).get("says", NOT_VERIFIED))
    return [*found.values(), *(Finding(UNCHECKED, text) for text in dict.fromkeys(unknown))]


def _reach(when: Mapping[str, Any]) -> tuple[float, float, float]:
    """How far a row reaches, the narrowest first: from week 28 before week 20, above 6.0 before 5.5."""
    lab = when.get("lab", {})
    return -when.get("pregnancy_weeks_from", 0), -lab.get("above", lab.get("from", 0)), lab.get("below", 0)


def _unasked(rows: Sequence[Row], patient: PatientState) -> list[Row]:
    """The gravest row on pregnancy as one for a woman of whom no pregnancy is recorded: what has to be asked."""
    early = [row for row in rows if row["when"].get("pregnancy_weeks_from", inf) <= UNNOTICED]
    grave = [row for row in rows if row in early or row["when"].get("problem") == "pregnancy"]
    grave = [row for row in grave if RANKS[row["rank"]] <= MAJOR]
    if not grave or not patient.may_become_pregnant or any("childbearing" in row["when"] for row in rows):
        return []
    row = min(grave, key=lambda row: RANKS[row["rank"]])
    kept = {key: value for key, value in row["when"].items() if key not in ("problem", "pregnancy_weeks_from")}
    says = row["says"] if "pregnan" in row["says"] else f"in pregnancy: {row['says']}"
    return [{**row, "when": {**kept, "childbearing": True}, "rank": "moderate", "says": says}]


def _fits(key: str, value: Any, patient: PatientState, route: str, order: str) -> str | None:
    """Why a part of a row holds for the patient; None if it does not; "?..." names what is not known of them."""
    match key:
        case "problem" | "chart_words":
            name = patient.has(value) if key == "problem" else patient.named(value)
            said = next((word for word in value if names([word], order)), "") if key == "chart_words" else ""
            if name and patient.ended and value == "pregnancy":
                return _measured("pregnancy_weeks", patient)[0][1]
            return f"the patient has: {name}" if name else f"the order says: {said}" if said else None
        case "childbearing":
            told = f"female, {patient.age} years old; pregnancy is not recorded (ask)"
            return told if patient.may_become_pregnant else None
        case "order_words":
            words = f" {plain(order.replace(',', ' '))} "
            return next((f"ordered: {word}" for word in value if f" {word} " in words), None)
        case "sex":
            return "" if patient.sex == value else None
        case "route":
            return "" if not route or route == value else None
        case "lab":
            return _beyond(value["name"], {key: value[key] for key in value if key != "name"}, patient)
    name, _, bound = key.removesuffix("_kg").rpartition("_")
    return _beyond(name, {bound: value}, patient)


def _beyond(name: str, limits: Mapping[str, float], patient: PatientState) -> str | None:
    """The measurement that lies beyond one of the limits; what it is that is not known."""
    known = _measured(name, patient)
    found = (why for value, why in known if any(BEYOND[bound](value, limit) for bound, limit in limits.items()))
    return next(found, None) if known else LACKING.get(name)


def _measured(name: str, patient: PatientState) -> list[tuple[float, str]]:
    """The values that stand for a measure, each with the words for it."""
    kidneys, cleared = patient.kidneys(), patient.clearance
    if name == "egfr" or (name == "clearance" and kidneys and WRITTEN in kidneys[1]):
        return [kidneys] if kidneys else []
    if name == "clearance":
        return [(cleared, f"creatinine clearance about {cleared:.0f} mL/min (Cockcroft-Gault)")] if cleared else []
    if name == "age":
        return [] if patient.age is None else [(patient.age, f"the patient is {patient.age} years old")]
    if name == "weight":
        return [(patient.weight, f"weight {patient.weight:.0f} kg")] if patient.weight else []
    if name == "pregnancy_weeks":
        weeks, problem = patient.pregnancy_weeks, patient.has("pregnancy")
        told = f"the patient has: {problem}{'' if weeks else ' (the week is not recorded)'}"
        told = f"{weeks} weeks of pregnancy" if weeks and WRITTEN not in problem else told
        if patient.ended:
            told = f"the chart says: {told.removeprefix('the patient has: ')}, you wrote “{patient.ended}”"
        return [(weeks or inf, told)] if problem else []
    known = patient.results.get(name)
    return [(known[0], f"latest {name}: {f'{known[0]:g} {known[1]}'.strip()} ({known[2]})")] if known else []
