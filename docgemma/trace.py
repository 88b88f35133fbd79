"""The timeline a clinician sees: which step ran, in plain words, what came of it, and how long it took."""

import functools
import time
from collections.abc import Callable
from typing import Any

from langgraph.runtime import Runtime

from docgemma.errors import StoppedError
from docgemma.nodes.context import Context
from docgemma.rules.refusal import is_rejected
from docgemma.state import AgentState, Step, ToolResult

LABELS = {
    "input_assembly": "Reading the request",
    "intent_classify": "Understanding the question",
    "tool_select": "Choosing the next step",
    "tool_execute": "Looking it up",
    "result_classify": "Checking what was found",
    "router": "Deciding what is still needed",
    "error_handler": "Handling a problem",
    "synthesize": "Writing the answer",
    "reopen_card": "Showing the waiting entry again",
}

QUALITY_WORDS = {
    "success_rich": "Complete information found",
    "success_partial": "Some information found",
    "no_results": "Searched, and nothing found",
    "error_retryable": "Temporarily unavailable",
    "error_fatal": "Could not be completed",
}

NEXT_WORDS = {
    "tool_select": "Another step is needed",
    "tool_execute": "Another step is needed",
    "error_handler": "A problem has to be handled",
    "synthesize": "Ready to answer",
}

Node = Callable[[AgentState, Runtime[Context]], dict[str, Any]]


def traced(name: str, node: Node) -> Any:
    """Wrap a node, for LangGraph, so that it reports when it starts and adds itself to `path` and `steps`."""

    @functools.wraps(node)
    def run(state: AgentState, *, runtime: Runtime[Context]) -> dict[str, Any]:
        context = runtime.context
        if context.stop():
            raise StoppedError("Stopped.", hint="Ask again, or ask something else.")
        enters = name == "tool_execute" and context.toolbox[state["current_tool"] or ""].writes
        label = "Making the record entry" if enters else LABELS[name]
        runtime.stream_writer({"type": "start", "node": name, "label": label})
        start = time.perf_counter()
        update = node(state, runtime)
        seconds = round(time.perf_counter() - start, 4)
        step = Step(node=name, label=label, detail=detail(name, state, update, context), seconds=seconds)
        return {**update, "path": [name], "steps": [step]}

    return run


def detail(name: str, state: AgentState, update: dict[str, Any], context: Context) -> str:
    """One line on what the step did, in clinical words: no tool names."""
    match name:
        case "input_assembly":
            found = update.get("extracted_entities") or state["extracted_entities"]
            parts = [*found["patient_ids"], *found["patient_names"], *found["drug_mentions"]]
            return "Found: " + ", ".join(parts) if parts else ""
        case "intent_classify":
            return "General question" if update["intent"] == "DIRECT" else "Needs a look-up or a record entry"
        case "tool_select":
            if not (tool := update.get("current_tool")):
                return "Nothing more is needed"
            values = [value for value in (update["current_args"] or {}).values() if value]
            shown = "; ".join(", ".join(value) if isinstance(value, list) else str(value) for value in values)
            return f"{context.toolbox[tool].label}: {shown[:160]}"
        case "tool_execute":
            return _executed(update["tool_results"][-1]) if update.get("tool_results") else ""
        case "result_classify":
            last = state["tool_results"][-1]
            if is_rejected(last):
                return "Rejected by the clinician; nothing was recorded"
            if last["writes"] and not last["error"]:
                return "Recorded"
            return QUALITY_WORDS.get(update.get("last_result_classification") or "", "")
        case "router" | "error_handler":
            clear = NEXT_WORDS.get(update.get("next_node") or "", "")
            return "A person has to decide" if update.get("clarification") else clear
    return ""


def _executed(result: ToolResult) -> str:
    if result["error"]:
        return f"{result['tool_label']}: {result['error']}"
    if is_rejected(result):
        return f"{result['tool_label']}: not recorded"
    origin = f" ({result['source']}, as of {result['as_of']})" if result["source"] and result["as_of"] else ""
    return f"{result['tool_label']}{origin}"
