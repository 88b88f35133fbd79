"""Hold a drug's coded contraindications and warnings against the patient. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from docgemma.rules.findings import CONTRAINDICATED, MAJOR, RANKS, UNCHECKED, Finding
from docgemma.rules.patient_state import PatientState
from docgemma.text.words import plain

Row = Mapping[str, Any]
HEADS = {CONTRAINDICATED: "Contraindicated", MAJOR: "Warning"}
NO_EGFR = "kidney function (no eGFR is recorded)"


def check_conditions(
    drug: str, rows: Iterable[Row], patient: PatientState, route: str, order: str = ""
) -> list[Finding]:
    """The rows of `data/knowledge/conditions.jsonl` that fit this patient.

    Args:
        drug: as ordered.
        route: as `data/clinical/order_routes.yaml` names it; "" if it is not said.
        order: the words of the order.
    """
    found: dict[str, Finding] = {}
    unknown: dict[str, None] = {}
    for row in rows:
        found_or_not = [_fits(key, value, patient, route, order) for key, value in row["when"].items()]
        reasons = [reason for reason in found_or_not if reason is not None]
        if len(reasons) < len(found_or_not):
            continue
        if lacking := [reason[1:] for reason in reasons if reason.startswith("?")]:
            unknown |= dict.fromkeys(lacking)
            continue
        rank = RANKS[row["rank"]]
        why = "; ".join(dict.fromkeys(reason for reason in reasons if reason))
        line = f"{HEADS.get(rank, 'Caution')} ({drug}): {row['says']}. {why[:1].upper()}{why[1:]}."
        if why not in found or found[why].rank > rank:  # of one reason the gravest line
            found[why] = Finding(rank, line)
    return [*found.values(), *(Finding(UNCHECKED, text) for text in unknown)]


def _fits(key: str, value: Any, patient: PatientState, route: str, order: str) -> str | None:
    """Why a part of a row holds for the patient; None if it does not; "?..." names what is not known of them."""
    age, weeks = patient.age, patient.pregnancy_weeks
    if key in ("problem", "chart_words"):
        name = patient.has(value) if key == "problem" else patient.named(value)
        return f"the patient has: {name}" if name else None
    if key == "pregnancy_weeks_from":
        if not (name := patient.has("pregnancy")):
            return None
        if weeks is None:
            return f"the patient has: {name} (the week is not recorded)"
        return f"{weeks} weeks of pregnancy" if weeks >= value else None
    if key == "childbearing":
        return f"female, {age} years old; no word on pregnancy" if patient.may_become_pregnant else None
    if key in ("age_below", "age_from"):
        if age is None:
            return "?age (no birth date is recorded)"
        return f"the patient is {age} years old" if (age < value) == (key == "age_below") else None
    if key == "weight_below_kg":
        if patient.weight is None:  # of adults only small ones matter, and children are weighed
            return None
        return f"weight {patient.weight:.0f} kg" if patient.weight < value else None
    if key == "egfr_below":
        return _below_egfr(value, patient)
    if key == "lab":
        return _result(value, patient)
    if key == "clearance_above":
        cleared = patient.clearance
        if cleared is None:
            return "?creatinine clearance (creatinine, weight or age is not recorded)"
        return f"creatinine clearance about {cleared:.0f} mL/min (Cockcroft-Gault)" if cleared > value else None
    if key == "order_words":
        told = f" {plain(order.replace(',', ' '))} "
        said = [word for word in value if f" {word} " in told]
        return f"ordered: {said[0]}" if said else None
    if key == "sex":
        return "" if patient.sex == value else None
    return "" if not route or route == value else None  # route


def _below_egfr(limit: float, patient: PatientState) -> str | None:
    known = patient.results.get("egfr") or patient.results.get("creatinine clearance")
    if known and known[0] < limit:
        return f"latest eGFR: {known[0]:g} ({known[2]})"
    if patient.clearance is not None and patient.clearance < limit:
        return f"creatinine clearance about {patient.clearance:.0f} mL/min (Cockcroft-Gault)"
    return None if known or patient.clearance is not None else f"?{NO_EGFR}"


def _result(limit: Mapping[str, Any], patient: PatientState) -> str | None:
    known = patient.results.get(limit["name"])
    if known is None:
        return None
    beyond = ("above" in limit and known[0] > limit["above"]) or ("below" in limit and known[0] < limit["below"])
    return f"latest {limit['name']}: {known[0]:g} {known[1]} ({known[2]})" if beyond else None
