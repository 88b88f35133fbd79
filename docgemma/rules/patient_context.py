"""What an answer about a drug and a patient must say of that patient, whatever the model wrote: who, and which results
the label asks for. A result that is not on record is said to be missing: unknown is never normal.
"""

import re
from collections.abc import Iterable
from typing import Any

from docgemma.rules import known
from docgemma.state import AgentState, ToolResult

# what a label speaks of, and the laboratory result that answers it
RENAL = re.compile(r"\begfr\b|renal impairment|creatinine clearance|kidney", re.I)
NEEDED = (
    (RENAL, re.compile(r"egfr|glomerular", re.I), "eGFR"),
    (re.compile(r"hyperkal|potassium", re.I), re.compile(r"^potassium", re.I), "potassium"),
    (re.compile(r"\bqtc?\b", re.I), re.compile(r"\bqtc?\b", re.I), "QTc"),
)  # fmt: skip
SHOWN = 2  # results beside one label; more would bury the warning


def with_patient(answer: str, state: AgentState) -> str:
    """The answer, headed by the patient it is about and followed by the results that the drug's label asks for.

    What it says already is not said twice.

    Args:
        answer: as it stands.
        state: of the turn; charts and labels are read from its results.
    """
    charts = [item for item in known.succeeded(state) if item["tool_name"] == "get_patient_chart"]
    if not charts:
        return answer
    data = charts[-1]["result"]
    lines = [line for label in _labels(state) for line in _results(label, data)]
    lines = [line for line in dict.fromkeys(lines) if line.casefold() not in answer.casefold()]
    if data["patient"]["name"].casefold() not in answer.casefold():
        answer = f"Patient: {data['patient']['label']}, patient ID {data['patient']['id']}.\n{answer}"
    return "\n".join([answer, *lines])


def by_patient(state: AgentState) -> str | None:
    """The whole answer where charts of several patients were read: each result by itself, under its patient, as found.

    A text about two people written as one could give the one's allergy to the other. None where there is one patient.
    """
    done = known.succeeded(state)
    people = {item["result"]["patient"]["id"] for item in done if item["tool_name"] == "get_patient_chart"}
    return "\n\n".join(known.unique(item["formatted_result"] for item in done)) if len(people) > 1 else None


def _labels(state: AgentState) -> list[ToolResult]:
    return [item for item in known.succeeded(state) if item["tool_name"] == "check_drug_safety"]


def _results(label: ToolResult, chart: dict[str, Any]) -> Iterable[str]:
    data = label["result"]
    text = " ".join([data.get("boxed_warning") or "", *data.get("contraindications", []), *data.get("warnings", [])])
    asked = [(lab, name) for words, lab, name in NEEDED if words.search(text)]
    for lab, name in asked[:SHOWN]:
        found = [item for item in [*chart.get("labs", []), *chart.get("vitals", [])] if lab.search(item["name"])]
        yield _line(found[0]) if found else f"No {name} is recorded for this patient."


def _line(item: dict[str, Any]) -> str:
    detail = ", ".join(part for part in (item.get("flag"), item.get("date")) if part)
    value = f"{item['name']} {item['value']} {item.get('unit') or ''}".strip()
    return f"Latest result: {value}{f' ({detail})' if detail else ''}."
