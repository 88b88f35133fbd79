"""Node 4: run the chosen tool. A write first stops for a person, with what the safety check found beside it."""

from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from docgemma.errors import ErrorType, StoreError, ToolError
from docgemma.nodes.context import Context, decided
from docgemma.nodes.synthesize import answer_by_code
from docgemma.nodes.write_card import as_card, pending_write
from docgemma.nodes.write_findings import chart_of, judge, without_unsaid
from docgemma.reading.drugs import said_for
from docgemma.reading.labels import WRITES
from docgemma.rules import known
from docgemma.rules.order_check import Finding, recorded_already, shown
from docgemma.rules.override import override, override_text, ranked
from docgemma.rules.typed import above_card
from docgemma.rules.waiting import as_held
from docgemma.state import RESET, ActivePatient, AgentState, ToolResult
from docgemma.text.words import plain
from docgemma.tools.base import Tool, validate
from docgemma.tools.writes import write_key


def execute_tool(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """One call. It becomes a ToolResult whatever happens; a retry replaces nothing and is not a new step."""
    context, tool = runtime.context, runtime.context.toolbox[state["current_tool"] or ""]
    args, findings = without_unsaid(state["current_args"] or {}, context), list[str]()
    retry = bool(state.get("retry_strategy"))
    seen: tuple[str, ...] | None = None
    kept = None
    reopened = state.get("reopened")
    before = [RESET, *reopened["results"]] if reopened else []  # the card's own turn goes on
    if reason := _against(tool, args, context):
        refused = context.toolbox.failed(tool.name, args, ToolError(ErrorType.NOT_PERMITTED, reason=reason))
        return {**_done(state, retry), "tool_results": [*before, refused], "reopened": None, "status": "refused"}
    drug = str(args.get("medication_name") or "")
    if drug not in context.drugs and (readings := said_for("ambiguous").get(plain(drug), {}).get("readings")):
        doubt = ToolError(ErrorType.AMBIGUOUS_DRUG_NAME, entity=drug, suggestions=readings)
        return {**_done(state, retry), "tool_results": [*before, context.toolbox.failed(tool.name, args, doubt)]}
    if tool.writes and _can_be_decided(tool, args, context):
        card = reopened or as_card(args, context)
        beside = _beside(state, args, context)
        told = known.told_of_one(known.request(state), str(card["args"].get("medication_name") or ""))
        args, judged, decision, reason, original = decide_write(
            tool, card["args"], card["original"], context, beside, told
        )
        findings, kept = shown(judged), override(ranked(judged), reason)
        if decision == "hold":
            waits, who = as_held(state, tool.name, args, original), _patient_of(args, context)  # "sorry, I meant Ewa"
            held = [waits, *known.held(state)]
            kept = {"held": held, "request": waits["request"], "active_patient": who}
            return {**kept, "current_tool": None, "final_response": None}
        if decision == "reject":
            text = f"{tool.label}: not recorded. The clinician rejected it."
            rejected = decided(tool, args, {"decision": "rejected", "findings": findings}, text)
            ended = {"status": "refused", "reopened": None, "active_patient": _patient_of(args, context)}
            return {**_done(state, retry), "tool_results": [*before, rejected], **ended}
        seen = tuple(findings)
    key = write_key(context.thread, state, tool) if tool.writes else ""
    result = context.toolbox.call(tool.name, args, context.tool_context(state, key, seen, override_text(kept)))
    result["retries"] = state["retry_count"] if retry else 0
    calls = result["result"].pop("calls", [])  # of a tool that asked the model itself
    if findings:
        result["result"] = {**result["result"], "findings": findings} | ({"override": kept} if kept else {})
    return {
        **_done(state, retry),
        **_patient(result),
        "current_args": args,
        "tool_results": [*before, result],
        "reopened": None,
        "status": "answered",  # whatever became of an entry before
        "calls": calls,
    }


def reopen_card(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Take up the entry that waited while this turn's question was answered."""
    held, *behind = known.held(state)
    return {
        "held": behind, "reopened": held, "current_tool": held["tool"], "current_args": held["args"],
        "turn_id": held["turn_id"], "message": held["message"], "user_query": held["user_query"],
        "request": held["request"], "retry_strategy": None, "retry_count": 0, "proposed_none": False,
        "intent": "TOOL_NEEDED", "clarification": None, "route": None, "subtasks": [], "subtask": 0,
    }  # fmt: skip


def decide_write(
    tool: Tool, args: dict[str, Any], original: dict[str, str], context: Context, beside: str, told: dict[str, Any]
) -> tuple[dict[str, Any], list[Finding], str, str, dict[str, str]]:
    """Ask until a person approves what stands there, rejects it or asks something else first ("hold"); with the reason.

    An edit that raises a new finding is shown again, and so is every "amend", a correction in words for instance.
    `told`: what the message says of the one patient whom it is about, and `others` that it orders.
    """
    seen: set[Finding] = set()
    judged = judge({**args, **told}, context)
    edited, reason = False, ""
    while not edited or set(judged) - seen:
        seen |= set(judged)
        pending = pending_write(tool, args, original, judged, context)
        decision = interrupt(dict(pending) | {"beside": beside})
        reason = decision.get("reason", "")
        if decision["decision"] in ("reject", "approve", "hold"):
            return args, judged, decision["decision"], reason, original
        card = as_card({**args, **decision["args"]}, context)
        original = {name: said for name, said in original.items() if name not in decision["args"]} | card["original"]
        told = told if card["args"].get("patient_id") == args.get("patient_id") else {}  # it was of somebody else
        args = {name: value for name, value in card["args"].items() if value != "" or name not in decision["args"]}
        edited, beside = decision["decision"] == "edit", decision.get("beside", "")
        judged = judge({**args, **told}, context)
    return args, judged, "approve", reason, original


def _beside(state: AgentState, args: dict[str, Any], context: Context) -> str:
    """What stands above the card: the answer to what the message asks besides its entries, for nobody waits for it
    until the card is decided; else what of the message is in no field, and what the chart has otherwise."""
    if state["reopened"]:  # another question was answered while the card waited
        return state.get("final_response") or ""
    request = known.request(state)
    if set(request["asks"]) - {*WRITES, "find", "fix", "ok", "chat", "gk"}:
        return answer_by_code(state, context).text
    chart = chart_of(args, context) if "medication_name" in args else {}
    return "\n".join(above_card(state, request, chart, args) if chart is not None else [])


def _patient_of(args: dict[str, Any], context: Context) -> ActivePatient | None:
    patient = context.store.patient(args["patient_id"])
    return ActivePatient(id=patient.id, name=patient.name) if patient else None


def _can_be_decided(tool: Tool, args: dict[str, Any], context: Context) -> bool:
    """A person is only asked about a write that could be carried out; otherwise the call itself says what is wrong."""
    try:
        validate(tool, args)
        return context.store.patient(args["patient_id"]) is not None
    except (ToolError, StoreError):
        return False


def _done(state: AgentState, retry: bool) -> dict[str, Any]:
    if retry:
        return {"retry_strategy": None}
    return {"step_count": state["step_count"] + 1, "retry_count": 0, "retry_strategy": None}


def _patient(result: ToolResult) -> dict[str, Any]:
    """Whom the record tools settled on becomes the active patient."""
    found = result["result"].get("patients") or ([result["result"]["patient"]] if "patient" in result["result"] else [])
    if result["error"] or len(found) != 1:
        return {}
    return {"active_patient": {"id": found[0]["id"], "name": found[0]["name"]}}


def _against(tool: Tool, args: dict[str, Any], context: Context) -> str:
    """Why no card is put up: nothing is prescribed for somebody who is recorded as dead, and no allergy twice."""
    chart = chart_of(args, context) if tool.name in ("prescribe_medication", "add_allergy") else None
    if not chart:
        return ""
    name = chart["patient"]["name"]
    if tool.name == "add_allergy":
        held = recorded_already(args, chart, context.drugs)
        return f"{name} has this allergy already: {held}. No second entry was prepared." if held else ""
    date = chart["deceased"]
    day = f" on {date[:10]}" if date != "yes" else ""
    return f"{name} is recorded as deceased{day}. Nothing was prescribed." if date else ""
