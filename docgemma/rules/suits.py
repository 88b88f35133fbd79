"""Set a label's contraindications and warnings beside a patient's problems, kidney function and age. Pure.

Which words mean the same is data. A line that only may fit is shown as a caution, never as a contraindication.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from docgemma.reading.terms import fits, measure_named, names
from docgemma.reading.words import clinical, plain
from docgemma.rules.chart_answer import age
from docgemma.rules.drugs import DrugNames, ingredients

HEAD_WORDS = 5  # of a contraindication: what stands later qualifies it
OLD, YOUNG = 65, 18  # years
OLDER = ("elderly", "older", "geriatric", "65 years", "age 65")
YOUNGER = (
    "children",
    "child",
    "pediatric",
    "paediatric",
    "adolescent",
    "infant",
    "neonat",
    "under 12",
    "below 12",
    "below 18",
)


def label_conflicts(
    drug: str, label: Mapping[str, Any], chart: Mapping[str, Any], drugs: DrugNames, today: date | None = None
) -> list[str]:
    """Lines of a label that speak of the patient, contraindications first, one line each.

    Args:
        drug: as ordered.
        label: `boxed_warning`, `contraindications`, `warnings`.
        chart: data of `get_patient_chart`; its active problems, latest eGFR and the birth date count.
        drugs: a line that names a drug which the patient does not take speaks of somebody else.
    """
    lines = [("Contraindicated", text) for text in label["contraindications"]]
    lines += [("Boxed warning", label["boxed_warning"])] if label["boxed_warning"] else []
    lines += [("Warning", text) for text in label["warnings"]]
    years = _years(chart, today or date.today())
    found = []
    for kind, text in lines:
        told = f"({drug}): {text.rstrip('.')}."
        if _names_other_drug(text, drug, chart, drugs):
            continue
        if limit := _kidney_limit(text):
            found += [f"{kind if 'Latest' in line else 'Caution'} {told} {line}" for line in _kidney(limit, chart)]
        elif state := _state(text, chart):
            found.append(f"{kind} {told} {state}")
        elif problems := _problems(text, chart["conditions"]):
            certain = kind != "Contraindicated" or _same_words(text, problems[0])
            found.append(
                f"{kind if certain else 'Caution'} {told} The patient has: {', '.join(name for name, _ in problems)}."
            )
        elif years is not None and ((years >= OLD and names(OLDER, text)) or (years < YOUNG and names(YOUNGER, text))):
            certain = kind != "Contraindicated" or _below(years, text)
            found.append(f"{kind if certain else 'Caution'} {told} The patient is {years} years old.")
    return sorted(dict.fromkeys(found), key=lambda line: not line.startswith("Contraindicated"))


def _names_other_drug(text: str, drug: str, chart: Mapping[str, Any], drugs: DrugNames) -> bool:
    head = " ".join(text.split()[:HEAD_WORDS])
    named = {part for item in drugs.find(head) for part in drugs.ingredients(item.name)} - ingredients(drug, drugs)
    taken = {part for item in chart["medications"] if item["active"] for part in ingredients(item["name"], drugs)}
    return bool(named) and not named & taken


def _kidney_limit(text: str) -> float | None:
    """The eGFR or creatinine clearance below which a line holds: "eGFR below 30", "30 to 45" is 45."""
    words = plain(text.lower().partition("ml/min")[0]).replace("/", " ").split()  # not the 1.73 of the unit
    if not {"egfr", "clearance"} & set(words):
        return None
    numbers = [float(word) for word in words if word.replace(".", "", 1).isdigit() and float(word) > 5]
    return max(numbers[:2]) if numbers else None


def _kidney(limit: float, chart: Mapping[str, Any]) -> list[str]:
    """The latest eGFR where it is below the limit; unknown is never normal."""
    latest = next((item for item in chart["labs"] if measure_named(item["name"]) == "egfr"), None)
    if latest is None:
        return ["No eGFR is recorded for this patient."]
    value = float("".join(char for char in latest["value"] if char.isdigit() or char == ".") or "nan")
    return [] if value >= limit else [f"Latest eGFR: {latest['value']} ({latest['date']})."]


def _problems(text: str, conditions: Sequence[Mapping[str, Any]]) -> list[tuple[str, Sequence[str]]]:
    """The active problems that a line speaks of, with the fragments by which it does; at most two."""
    found: dict[str, Sequence[str]] = {}
    for entry in clinical("problems")["problems"]:
        if names(entry["label"], text):
            for item in conditions:
                if item["active"] and names(entry["chart"], item["name"]):
                    found.setdefault(item["name"], [*entry["chart"], *entry["label"]])
    return list(found.items())[:2]


def _same_words(text: str, problem: tuple[str, Sequence[str]]) -> bool:
    """Whether a contraindication begins with the very words of the problem ("asthma", "pregnancy") and sets no limit of
    its own: "dementia with Lewy bodies" is not Alzheimer's disease, "neutrophils below 1500" is no tumour."""
    name, fragments = problem
    head = " ".join(plain(text).split()[:HEAD_WORDS])
    shared = [str(fragment) for fragment in fragments if names([fragment], name)]
    return not any(char.isdigit() for char in text) and any(fits(fragment, head) >= 0 for fragment in shared)


def _state(text: str, chart: Mapping[str, Any]) -> str:
    """The latest result that is in the state which a line names: potassium is high, the line says hyperkalemia."""
    for entry in clinical("measure_labels")["states"]:
        if names(entry["match"], text):
            for item in chart["labs"]:
                if measure_named(item["name"]) == entry["measure"] and entry["flag"] in item["flag"]:
                    return f"Latest {item['name']}: {item['value']} {item['unit']} ({item['flag']}, {item['date']})."
    return ""


def _below(years: int, text: str) -> bool:
    """Whether a contraindication names an age that the patient has not reached: "children below 12"."""
    ages = [int(word) for word in plain(text).split() if word.isdigit() and int(word) <= YOUNG]
    return bool(ages) and years < max(ages)


def _years(chart: Mapping[str, Any], today: date) -> int | None:
    born = chart["patient"]["birth_date"]
    return age(born, today) if len(born) == 10 else None
