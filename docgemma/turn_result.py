"""A finished or stopped turn as the contract's JSON: what `docgemma ask --json`, the API and the demo show."""

from typing import Any

from docgemma.state import AgentState, PendingWrite, ToolResult

FIRST = 5  # findings that a tired person reads; the worst come first


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
        "unanswered": state.get("unanswered") or [],
        "grounding": state.get("grounding") or {"supported": True, "removed": []},
        "sources": state.get("sources") or sources(state),
        "confidence": None,
        "timeline": [{key: step[key] for key in ("label", "detail", "seconds")} for step in state.get("steps", [])],
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
    """Where the facts of the answer come from, one entry a tool result, with links to check them."""
    return [
        {"label": item["tool_label"], "source": item["source"], "as_of": item["as_of"], "links": item["links"]}
        for item in state.get("tool_results", [])
        if item["source"] and not item["error"]
    ]


def _tool(result: ToolResult) -> dict[str, Any]:
    rest = {key: result[key] for key in ("error_type", "retries", "source", "as_of", "seconds")}
    ok = result["error_type"] is None
    return {"name": result["tool_name"], "label": result["tool_label"], "args": result["args"], "ok": ok, **rest}
