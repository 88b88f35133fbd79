"""What code alone would decide, without any model: keywords, first options, the majority class. To compare with."""

import json
import time
from typing import Any

from docgemma.edge import items as sets
from docgemma.edge.evaluate import Evaluation
from docgemma.edge.score import invented, same_args, says
from docgemma.errors import RETRYABLE
from docgemma.nodes.synthesize import evidence
from docgemma.nodes.tool_select import constrain
from docgemma.rules.completion import missing_tools, required_tools
from docgemma.rules.fallback import answer_from_evidence
from docgemma.rules.spans import choices
from docgemma.schemas import NO_TOOL
from docgemma.state import AgentState


class RulesAlone(Evaluation):
    """The same items and marks; each decision is the task patterns' or the likeliest option."""

    def __init__(self) -> None:
        super().__init__(llm=None)  # type: ignore[arg-type]

    def result(self, item: sets.Item) -> None:
        state = sets.state_of(item, self.drugs)
        state["tool_results"] = [sets.stored_result(entry) for entry in item["results"]]
        start = time.perf_counter()
        if item["quality"]:
            self._mark(item, "result class", item["quality"], "success_rich", item["quality"] == "success_rich", start)
        text = answer_from_evidence(state)
        right = says(text, item["critical"])
        self._mark(item, "answer has the critical fact", "fact", "fact" if right else "none", right, start)
        extra = invented(text, evidence(state), self.drugs)
        self._mark(item, "nothing invented", "nothing", ", ".join(extra) or "nothing", not extra, start)

    def retry(self, item: sets.Item) -> None:
        got = "retry_same" if item["error_type"] in {str(kind) for kind in RETRYABLE} else "retry_different_args"
        self._mark(item, "retry", item["strategy"], got, got == item["strategy"], time.perf_counter())

    def triage(self, item: sets.Item) -> None:
        state = sets.state_of(item, self.drugs)
        count = len(required_tools(state["user_query"], state["extracted_entities"], bool(state["active_patient"])))
        got = ("direct", "lookup", "multi_step")[min(count, 2)]
        self._mark(item, "triage", item["route"], got, got == item["route"], time.perf_counter())

    def _intent(self, item: sets.Item, state: AgentState, expected: str) -> AgentState:
        start = time.perf_counter()
        needed = required_tools(state["user_query"], state["extracted_entities"], bool(state["active_patient"]))
        image = state["extracted_entities"]["has_image"]
        got = "TOOL_NEEDED" if needed or image else "DIRECT"
        self._mark(item, "intent", expected, got, got == expected, start)
        return state

    def _choice(self, item: sets.Item, state: AgentState, place: int, step: dict | None, left: list[dict]) -> None:
        capability = "next tool" if place else "first tool"
        right = (
            {entry["tool"] for entry in left} if step and item.get("any_order") else {step["tool"] if step else NO_TOOL}
        )
        start = time.perf_counter()
        missing = missing_tools(state)
        image = state["extracted_entities"]["has_image"] and not place
        got = missing[0] if missing else "analyze_medical_image" if image else NO_TOOL
        for name in (capability, f"{capability} in the graph"):
            self._mark(item, name, step["tool"] if step else NO_TOOL, got, got in right, start)

    def _arguments(self, item: sets.Item, state: AgentState, step: dict[str, Any]) -> None:
        """What code settles, and the first option of everything else."""
        start, tool = time.perf_counter(), self.context.toolbox[step["tool"]]
        options = {name: choices(name, tool.name, state, self.drugs) for name in tool.args.model_fields}
        schema, settled = constrain(tool.args, options)
        first = {name: options[name][0] for name in schema.model_fields if options[name]} if schema else {}
        if isinstance(first.get("drug_names"), str):
            first["drug_names"] = options["drug_names"][:2]
        got = {**first, **settled}
        right = same_args(step["args"], got)
        for name in ("arguments", f"arguments {step['tool']}"):
            self._mark(item, name, json.dumps(step["args"]), json.dumps(got, ensure_ascii=False), right, start)
