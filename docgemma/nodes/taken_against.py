"""What the message tells of a patient against what they take already."""

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from docgemma.knowledge.drug_rules import PARTS, Row, conditions_of, fact_key, product_of
from docgemma.nodes.context import Context
from docgemma.nodes.interactions import told_interactions
from docgemma.rules.conditions import check_conditions
from docgemma.rules.order_check import CONTRAINDICATED, MAJOR, Finding
from docgemma.rules.patient_state import WRITTEN, PatientState
from docgemma.text.drugs import ingredients
from docgemma.tools.records import active_ingredients

MEASURED = frozenset({"lab", "egfr_below"})  # conditions on a result
HELD = frozenset({"problem", "chart_words"})  # conditions on what the patient has


def of_taken(args: dict[str, Any], chart: dict[str, Any], patient: PatientState, context: Context) -> list[Finding]:
    """What results, problems and medicines that the message tells say against what is taken: K 5.9, spironolactone."""
    known_of = active_ingredients(chart, context.drugs) | ingredients(args["medication_name"], context.drugs)
    others = told_interactions(args.get("told") or "", chart, known_of, context)
    measured = taken_against(args, chart, patient, context, MEASURED, MAJOR)
    return [*measured, *taken_against(args, chart, patient, context), *others]


def taken_against(
    args: dict[str, Any], chart: dict[str, Any], patient: PatientState, context: Context, keys: Set[str] = HELD,
    worst: int = CONTRAINDICATED,
) -> Iterator[Finding]:  # fmt: skip
    """What rules on these `keys` say so gravely against what is taken, by what is told: "TIA today", sumatriptan."""
    ordered = ingredients(args["medication_name"], context.drugs)
    taken = [ingredients(item["name"], context.drugs) for item in chart["medications"] if item["active"]]
    for part in sorted({name for parts in taken for name in [product_of(parts), *parts]} - ordered):
        whole = {False, None, frozenset([part]) in taken}  # a row of the drug `alone` is none of a combination
        rows = [row for row in conditions_of(part) if row["when"].keys() & keys and row.get("alone") in whole]
        judged = check_conditions(part, with_basis(rows, context), patient, "")
        grave = (item._replace(rank=MAJOR, first="") for item in judged if item.rank <= worst and WRITTEN in item.text)
        yield from (item._replace(text=f"{part.capitalize()} is taken. {item.text}") for item in grave)


def with_basis(rows: Iterable[Mapping[str, Any]], context: Context) -> list[Row]:
    """The rows, each with the label that states a part of it, where one does."""
    quotes = context.knowledge.quotes
    keys = [(row, [(part, fact_key(row, part)) for part in PARTS if part in row]) for row in rows]
    return [{"basis": {part: quotes[key] for part, key in parts if key in quotes}, **row} for row, parts in keys]
