"""The timeline a clinician sees: which step ran, in plain words, what came of it, and how long it took."""

import functools
import time
from collections.abc import Callable
from typing import Any, Protocol

from langgraph.runtime import Runtime

from docgemma.errors import StoppedError
from docgemma.nodes.context import Context
from docgemma.rules.refusal import is_rejected
from docgemma.state import AgentState, Request, Step
from docgemma.text.quoted import shortened

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

NOT_RECORDED = "Rejected by the clinician; nothing was recorded"

Node = Callable[[AgentState, Runtime[Context]], dict[str, Any]]


class TracedNode(Protocol):
    """A node as LangGraph calls it."""

    def __call__(self, state: AgentState, *, runtime: Runtime[Context]) -> dict[str, Any]: ...


def traced(name: str, node: Node) -> TracedNode:
    """Wrap a node so that it reports when it starts and adds itself to `path` and `steps`."""

    @functools.wraps(node)
    def run(state: AgentState, *, runtime: Runtime[Context]) -> dict[str, Any]:
        if runtime.context.stop():
            raise StoppedError("Stopped.", hint="Ask again, or ask something else.")
        label = _label(name, state, runtime.context)
        runtime.stream_writer({"type": "start", "node": name, "label": label})
        start = time.perf_counter()
        update = node(state, runtime)
        step = Step(
            node=name, label=label, detail=detail(name, state, update, runtime.context),
            seconds=round(time.perf_counter() - start, 4),
        )  # fmt: skip
        return {**update, "path": [name], "steps": [step]}

    return run


def detail(name: str, state: AgentState, update: dict[str, Any], context: Context) -> str:
    """One line on what the step did, in clinical words: no tool names."""
    match name:
        case "input_assembly":
            return _found(update.get("request") or state["request"])
        case "intent_classify":
            return "General question" if update["intent"] == "DIRECT" else "Needs a look-up or a record entry"
        case "tool_select":
            tool = update.get("current_tool")
            return (
                f"{context.toolbox[tool].label}: {_args(update['current_args'])}" if tool else "Nothing more is needed"
            )
        case "tool_execute":
            return _executed(update)
        case "result_classify":
            last = state["tool_results"][-1]
            if is_rejected(last):
                return NOT_RECORDED
            if context.toolbox[last["tool_name"]].writes and not last["error"]:
                return "Recorded"
            return QUALITY_WORDS.get(update.get("last_result_classification") or "", "")
        case "router" | "error_handler":
            return _next_words(update)
        case _:
            return ""


def _label(name: str, state: AgentState, context: Context) -> str:
    """The step in plain words; a write is not looked up."""
    if name == "tool_execute" and context.toolbox[state["current_tool"] or ""].writes:
        return "Making the record entry"
    return LABELS[name]


def _found(request: Request) -> str:
    parts = [*(patient["id"] for patient in request["patients"])]
    parts += [*(patient["said"] for patient in request["patients"] if patient["search"]), *request["unclear"]]
    parts += [*(drug["said"] for drug in request["drugs"]), *(order["said"] for order in request["orders"])]
    return "Found: " + ", ".join(parts) if parts else ""


def _args(args: dict[str, Any] | None) -> str:
    shown = (", ".join(value) if isinstance(value, list) else str(value) for value in (args or {}).values() if value)
    return shortened("; ".join(shown), 160)


def _executed(update: dict[str, Any]) -> str:
    results = update.get("tool_results") or []
    if not results:
        return ""
    last = results[-1]
    if last["error"]:
        return f"{last['tool_label']}: {last['error']}"
    if is_rejected(last):
        return f"{last['tool_label']}: not recorded"
    origin = f" ({last['source']}, as of {last['as_of']})" if last["source"] and last["as_of"] else ""
    return f"{last['tool_label']}{origin}"


def _next_words(update: dict[str, Any]) -> str:
    if update.get("clarification"):
        return "A person has to decide"
    return {
        "tool_select": "Another step is needed",
        "tool_execute": "Another step is needed",
        "error_handler": "A problem has to be handled",
        "synthesize": "Ready to answer",
    }.get(update.get("next_node") or "", "")
