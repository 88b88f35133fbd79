"""What is shown of a turn: the timeline as it runs, the contract's JSON of it, and the approval card in plain text."""

import functools
import time
from collections.abc import Callable
from typing import Any, Literal

from langgraph.runtime import Runtime

from docgemma.errors import StoppedError
from docgemma.nodes.context import Context
from docgemma.nodes.subtasks import confidence
from docgemma.paths import data_yaml
from docgemma.rules.override import override_text
from docgemma.rules.refusal import is_rejected
from docgemma.state import AgentState, PendingWrite, Request, Step, ToolResult
from docgemma.text.quoted import shortened

FIRST = 5  # findings that a tired person reads; the worst come first
SHOWN: tuple[Literal["label", "detail", "seconds", "calls"], ...] = ("label", "detail", "seconds", "calls")

Node = Callable[[AgentState, Runtime[Context]], dict[str, Any]]


@functools.cache
def words() -> dict[str, dict[str, str]]:
    """What the timeline says: `labels` of the nodes; `quality`, `route`, `retry` and `next`, what came of a step."""
    return data_yaml("timeline.yaml")


def traced(name: str, node: Node) -> Any:
    """Wrap a node, for LangGraph, so that it reports when it starts and adds itself to `path` and `steps`."""

    @functools.wraps(node)
    def run(state: AgentState, *, runtime: Runtime[Context]) -> dict[str, Any]:
        context = runtime.context
        if context.stop():
            raise StoppedError("Stopped.", hint="Ask again, or ask something else.")
        enters = name == "tool_execute" and context.toolbox[state["current_tool"] or ""].writes
        label = "Making the record entry" if enters else words()["labels"][name]
        runtime.stream_writer({"type": "start", "node": name, "label": label})
        start = time.perf_counter()
        update = node(state, runtime)
        seconds = round(time.perf_counter() - start, 4)
        calls = len(update.get("calls") or [])
        step = Step(node=name, label=label, detail=detail(name, state, update, context), seconds=seconds, calls=calls)
        return {**update, "path": [name], "steps": [step]}

    return run


def detail(name: str, state: AgentState, update: dict[str, Any], context: Context) -> str:
    """One line on what the step did, in clinical words: no tool names."""
    match name:
        case "input_assembly" | "image_detection":
            return _found(update.get("request") or state["request"])
        case "intent_classify":
            return "General question" if update["intent"] == "DIRECT" else "Needs a look-up or a record entry"
        case "complexity_router" | "triage":
            return words()["route"].get(update["route"], "")
        case "decompose" | "extract_needs":
            parts = [context.toolbox[part["tool"]].label for part in update["subtasks"]]
            return "A person has to decide" if update.get("clarification") else ", ".join(parts)
        case "think" | "think_again" if update:
            return f"The model's own reasoning, not checked: {shortened(update['thoughts'][-1], 160)}"
        case "validate_call":
            return str(update["fault"])
        case "error_strategy" if not update.get("clarification"):
            return words()["retry"].get(update.get("retry_strategy") or "", "Left out")
        case "tool_select" | "plan_tool" | "fast_path" | "fix_args":
            args = update["current_args"] or {}
            if not (tool := update.get("current_tool", state.get("current_tool"))):
                return "Nothing more is needed"
            values = [value for value in args.values() if value]
            shown = "; ".join(", ".join(value) if isinstance(value, list) else str(value) for value in values)
            return f"{context.toolbox[tool].label}: {shortened(shown, 160)}"
        case "tool_execute":
            return (
                _executed(update["tool_results"][-1], state["current_args"] or {}) if update.get("tool_results") else ""
            )
        case "result_classify" | "check_result" | "assess_result":
            if not update.get("quality"):
                return ""
            last = state["tool_results"][-1]
            if is_rejected(last):
                return "Rejected by the clinician; nothing was recorded"
            if last["writes"] and not last["error"]:
                return "Recorded"
            return words()["quality"].get(update.get("last_result_classification") or "", "")
        case "router" | "error_handler" | "error_strategy":
            clear = words()["next"].get(update.get("next_node") or "", "")
            return "A person has to decide" if update.get("clarification") else clear
    return ""


def _found(request: Request) -> str:
    parts = [*(patient["id"] for patient in request["patients"])]
    parts += [*(patient["said"] for patient in request["patients"] if patient["search"]), *request["unclear"]]
    parts += [*(drug["said"] for drug in request["drugs"]), *(order["said"] for order in request["orders"])]
    return "Found: " + ", ".join(dict.fromkeys(parts)) if parts else ""


def _executed(result: ToolResult, asked: dict[str, Any]) -> str:
    if result["error"]:
        return f"{result['tool_label']}: {result['error']}"
    if is_rejected(result):
        return f"{result['tool_label']}: not recorded"
    origin = f" ({result['source']}, as of {result['as_of']})" if result["source"] and result["as_of"] else ""
    edits = [
        f"{asked[name]} → {new}"
        for name, new in result["args"].items()
        if result["writes"] and asked.get(name, new) != new
    ]
    edited = f"Edited by the clinician: {', '.join(edits)}" if edits else ""
    return ". ".join(
        filter(None, [f"{result['tool_label']}{origin}", edited, override_text(result["result"].get("override"))])
    )


def report(
    state: AgentState, *, thread: str, graph: str, model: str, pending: PendingWrite | None, seconds: float, beside: str
) -> dict[str, Any]:
    """The turn as one JSON object; every key is always there. `beside`: the answer above a card that waits."""
    calls, question = state.get("calls", []), state.get("clarification")
    card = [beside, approval_text(pending)] if pending else []
    return {
        "thread": thread,
        "graph": graph,
        "model": model,
        "status": "needs_approval" if pending else state.get("status", "answered"),
        "answer": "\n\n".join(filter(None, card)) if pending else state.get("final_response") or "",
        "path": [*state.get("path", []), *(["tool_execute"] if pending else [])],
        "intent": state.get("intent"),
        "tools": [_tool(result) for result in state.get("tool_results", [])],
        "quality": state.get("quality", []),
        "options": question["options"] if question else [],
        "pending_write": pending,
        "lead": "" if pending else state.get("lead") or "",
        "groups": [] if pending else state.get("groups") or [],
        "unanswered": state.get("unanswered") or [],
        "grounding": state.get("grounding") or {"supported": True, "removed": []},
        "sources": state.get("sources") or sources(state),
        "confidence": confidence(state) if graph == "v2" and not pending else None,
        "timeline": [{key: step[key] for key in SHOWN if key in step} for step in state.get("steps", [])],
        "llm_calls": len(calls),
        "tokens": {kind: sum(call[f"{kind}_tokens"] for call in calls) for kind in ("prompt", "completion")},
        "seconds": round(seconds, 3),
    }


def model_calls(result: dict[str, Any]) -> str:
    """How often the model was called, in words."""
    return "1 model call" if result["llm_calls"] == 1 else f"{result['llm_calls']} model calls"


def source_line(source: dict[str, Any]) -> str:
    """Where one result comes from and as of when, in one line."""
    name = source.get("source") or source.get("title") or ""
    label = f"{source['label']}: " if source.get("label") else ""
    return f"{label}{name}" + (f", as of {source['as_of']}" if source.get("as_of") else "")


def approval_text(pending: PendingWrite) -> str:
    """The approval card in plain text."""
    lines = [f"{pending['label']} waits for your approval:"]
    if who := pending.get("patient"):
        born = f", born {who['birth_date']}" if who["birth_date"] else ""
        lines.append(f"  patient: {who['name']}{born}, ID {who['id']}")
    original = pending.get("original") or {}
    for key, value in pending["args"].items():
        if key != "patient_id" or not who:
            written = f" (written: {original[key]})" if key in original else ""
            lines.append(f"  {key.replace('_', ' ')}: {value}{written}")
    shown = [f"  Safety check: {finding}" for finding in pending["findings"]]
    more = [f"  {len(shown) - FIRST} more:", *shown[FIRST:]] if len(shown) > FIRST + 1 else shown[FIRST:]
    lines += [*shown[:FIRST], *more]
    return "\n".join(lines)


def sources(state: AgentState) -> list[dict[str, Any]]:
    """Where the facts of the answer come from, one entry a tool result, with links to check them, and what was read
    there; a chart is read in the record."""
    found = [item for item in state.get("tool_results", []) if item["source"] and not item["error"]]
    read = ["" if {"patient", "patients"} & set(item["result"]) else item["formatted_result"] for item in found]
    facts = [{key: item[key] for key in ("source", "as_of", "links")} for item in found]
    labels = [item["tool_label"] for item in found]
    return [
        {"label": label, **fact, "passage": passage} for label, fact, passage in zip(labels, facts, read, strict=True)
    ]


def _tool(result: ToolResult) -> dict[str, Any]:
    rest = {key: result[key] for key in ("error_type", "retries", "source", "as_of", "seconds")}
    ok = result["error_type"] is None
    rest |= {"override": result["result"]["override"]} if result["result"].get("override") else {}
    return {"name": result["tool_name"], "label": result["tool_label"], "args": result["args"], "ok": ok, **rest}
