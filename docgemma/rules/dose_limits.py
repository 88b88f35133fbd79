"""State a drug's maximum doses for a person of a given age and weight, computed from the rows per kg. Pure."""

from docgemma.rules.dosing import Order, Row, Rows, fitting_rows, limit_of, narrower, route_of, told_amount
from docgemma.rules.patient_state import PatientState

CHILD_KG = 40  # below this weight, where no age is given, the rows of children are meant
CHILD_AGE = 12
MAXIMA = {"max_day": "a day", "max_single": "in one dose"}
LIMITS = {*MAXIMA, *(f"{key}_per_kg" for key in MAXIMA)}


def maxima_for(rows: Rows, patient: PatientState, said: str, child: bool) -> list[str]:
    """The maxima of the rows that fit: "oral, below 12 years, at 20 kg: 800 mg a day (40 mg/kg), 200 mg in one dose
    (10 mg/kg)"; [] where neither age, weight nor
    kidney function is known.

    Args:
        rows: of `data/knowledge/doses.jsonl`, of one drug.
        said: the question; its route and indication choose rows.
        child: the question is about a child.
    """
    kidney = patient.results.get("egfr")
    if patient.age is None and patient.weight is None and not kidney and not child:
        return []
    routes = dict.fromkeys(row["route"] for row in rows if "route" in row)
    route = route_of(said) or ("oral" if "oral" in routes else next(iter(routes), ""))
    mine = [row for row in rows if row.get("route", route) == route and LIMITS & set(row)]
    small = child or (patient.weight is not None and patient.weight < CHILD_KG)
    if patient.age is None and small:
        chosen = [row for row in mine if row.get("age_below", 0) >= CHILD_AGE]
    else:
        chosen = fitting_rows(mine, Order("", "", "", said, None, None, patient))
    light = [row for row in rows if "weight_below_kg" in row and row not in mine and patient.weight is not None]
    chosen += [row for row in light if not route_of(said) and patient.weight < row["weight_below_kg"]]
    narrowest = [
        row for row in chosen
        if not any(_same_route(row, other) and narrower(other, row) and not narrower(row, other) for other in chosen)
    ]  # fmt: skip
    return list(dict.fromkeys(_told(row, row.get("route", route), patient) for row in narrowest))


def _same_route(row: Row, other: Row) -> bool:
    return bool(row.get("route") == other.get("route"))


def _told(row: Row, route: str, patient: PatientState) -> str:
    whom = [
        route,
        row.get("form", ""),
        f"for {row['for']}" if "for" in row else "",
        f"{row['age_from']} years and older" if "age_from" in row else "",
        f"below {row['age_below']} years" if "age_below" in row else "",
        f"eGFR below {row['egfr_below']}" if "egfr_below" in row else "",
        f"below {row['weight_below_kg']} kg" if "weight_below_kg" in row else "",
        f"at {patient.weight:g} kg" if patient.weight and any("per_kg" in key for key in row) else "",
    ]
    most = []
    for key, each in MAXIMA.items():
        per_kg = row.get(f"{key}_per_kg")
        if limit := limit_of(row, key, patient):
            fixed = "" if not per_kg or not patient.weight else f" ({per_kg}/kg)"
            most.append(f"{told_amount(limit)} {each}{fixed}")
        if per_kg and not patient.weight:
            most.append(f"{per_kg}/kg {each}")
    return f"{', '.join(filter(None, whom))}: {', '.join(most)}" + (f" ({row['note']})" if "note" in row else "")
