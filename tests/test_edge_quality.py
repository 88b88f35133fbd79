"""The class of a result where its content settles it, before the edge model is asked."""

import pytest

from docgemma.edge.quality import settled_quality
from docgemma.state import ToolResult


def result(tool: str, data: dict, args: dict | None = None, text: str = "") -> ToolResult:
    return ToolResult(
        tool_name=tool, tool_label="Label", args=args or {}, result=data, formatted_result=text, empty=False,
        error=None, error_type=None, details={}, retries=0, source="", as_of="", seconds=0.0, sources=[],
    )  # fmt: skip


def trial(title: str, status: str = "RECRUITING", demonstration: bool = False) -> dict:
    return {"title": title, "status": status, "demonstration": demonstration, "conditions": []}


def listed(title: str, **more) -> dict:
    return {"articles": [{"title": title, "demonstration": False} | more]}


INTERACTIONS = {"interactions": [], "none_listed": [], "not_checked": []}
TABLE = [
    ("prescribe_medication", {}, {}, "success_rich"),
    ("search_patient", {"patients": []}, {}, "no_results"),
    ("search_patient", {"patients": [{"guessed": True}]}, {}, "success_partial"),
    ("search_patient", {"patients": [{"guessed": False}]}, {}, "success_rich"),
    ("check_drug_interactions", INTERACTIONS, {}, "success_rich"),
    ("check_drug_interactions", INTERACTIONS | {"not_checked": ["x"]}, {}, "no_results"),
    ("check_drug_interactions", INTERACTIONS | {"not_checked": ["x"], "none_listed": [1]}, {}, "success_partial"),
    ("analyze_medical_image", {"confidence": 0.2}, {}, "success_partial"),
    ("search_medical_literature", {"articles": []}, {"query": "zinc"}, "no_results"),
    ("search_medical_literature", listed("Zinc for the common cold"), {"query": "zinc common cold"}, "success_rich"),
    ("search_medical_literature", listed("Sunscreen at work"), {"query": "rituximab in nephritis"}, "no_results"),
    ("search_medical_literature", listed("Zinc at work"), {"query": "zinc common cold"}, None),
    ("search_medical_literature", listed("Zinc", demonstration=True), {"query": "zinc"}, "success_partial"),
    ("find_clinical_trials", {"trials": [trial("Asthma in adults")]}, {"condition": "asthma"}, "success_rich"),
    ("find_clinical_trials", {"trials": [trial("Asthma", "COMPLETED")]}, {"condition": "asthma"}, "success_partial"),
]


@pytest.mark.parametrize(("tool", "data", "args", "expected"), TABLE)
def test_what_the_content_settles_is_not_asked(tool: str, data: dict, args: dict, expected: str | None) -> None:
    text = "Found 1.\n" + " ".join(item["title"] for item in data.get("articles", data.get("trials", [])))
    assert settled_quality("are any recruiting?", result(tool, data, args, text)) == expected
