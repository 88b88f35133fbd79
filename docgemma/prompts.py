"""What a language model is asked at each node: `data/prompts.yaml` with the state filled in, and the answer's schema.
The edge model is asked nothing: `Context.reads`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, Optional, TypeVar

from pydantic import BaseModel, create_model

from docgemma.llm.base import GenConfig, Prompt
from docgemma.paths import data_yaml
from docgemma.schemas import NO_TOOL, IntentClassification, ResultAssessment, RetryStrategy, ToolSelection
from docgemma.state import AgentState, ToolResult

if TYPE_CHECKING:
    from docgemma.tools.base import Tool

HISTORY_TURNS = 4  # the last 2-4 turns; v3 spec, section 4, node 1
ANALYTICAL_PREFIX = "Analyzing the task requirements, "

BRIEF = "Include only the most critical findings.\n\n"
BRIEF_TOOLS = frozenset({"check_drug_safety", "search_medical_literature"})

S = TypeVar("S", bound=BaseModel)


@cache
def _wording() -> dict[str, dict[str, Any]]:
    return data_yaml("prompts.yaml")


def system(node: str) -> str:
    """What the model is told of its task at a node."""
    return str(_wording()[node]["system"])


def generation(node: str) -> GenConfig:
    """How the model samples at a node."""
    return GenConfig(_wording()[node]["temperature"], _wording()[node]["max_tokens"])


@dataclass(frozen=True)
class Ask(Generic[S]):
    """One constrained call: what the model is told at a node, and the schema of what may come back."""

    node: str
    prompt: Prompt
    schema: type[S]


def ask_intent(state: AgentState, tools: Sequence["Tool"]) -> Ask[IntentClassification]:
    schema = closed(IntentClassification, "suggested_tool", [tool.name for tool in tools])
    return Ask("intent_classify", Prompt(user=situation(state), system=system("intent_classify")), schema)


def ask_tool(state: AgentState, candidates: Sequence["Tool"], allow_none: bool) -> Ask[ToolSelection]:
    """Which of the candidates; `allow_none`: or nothing more."""
    suggested = state.get("suggested_tool")
    example = next((tool for tool in candidates if tool.name == suggested), candidates[0])
    told = system("tool_select").format(
        full_desc_tool_list="\n\n".join(f"- {tool.full_description}" for tool in candidates),
        matched_example_query=example.example,
        matched_example_tool=example.name,
    )
    names = [tool.name for tool in candidates] + ([NO_TOOL] if allow_none else [])
    user = join(situation(state), f"Task: {state.get('task_summary', '')}", earlier_results(state))
    if allow_none:
        user += f'\n\nIf nothing more is needed, answer "{NO_TOOL}".'
    schema = closed(ToolSelection, "tool_name", names)
    return Ask("tool_select", Prompt(user=user, system=told, prefix=ANALYTICAL_PREFIX), schema)


def ask_arguments(state: AgentState, tool: "Tool", schema: type[S]) -> Ask[S]:
    """The tool's arguments that code could not settle: the fields of `schema`."""
    told = system("tool_arguments").format(
        tool_name=tool.name, tool_full_description=tool.description,
        user_query=state["user_query"], entity_hints=entity_hints(state),
    )  # fmt: skip
    user = join(_history(state), earlier_results(state), last_error(state, tool.name)) or state["user_query"]
    return Ask("tool_arguments", Prompt(user=user, system=told), schema)


def ask_quality(state: AgentState, result: ToolResult) -> Ask[ResultAssessment]:
    text = system("result_classify").format(
        user_query=state["user_query"], task_summary=state.get("task_summary", ""),
        tool_label=result["tool_label"], formatted_tool_result=result["formatted_result"],
    )  # fmt: skip
    return Ask("result_classify", Prompt(user=text), ResultAssessment)


def ask_retry(state: AgentState, result: ToolResult) -> Ask[RetryStrategy]:
    user = f"Clinician's question: {state['user_query']}\n\n[{result['tool_label']}] {result['formatted_result']}"
    return Ask("error_handler", Prompt(user=user, system=system("error_handler")), RetryStrategy)


def answer_prompt(state: AgentState) -> Prompt:
    """The prompt of the one free text, sampled as `synthesize` is."""
    results = state.get("tool_results", [])
    brief = len(results) == 1 and results[0]["tool_name"] in BRIEF_TOOLS
    user = join(
        _history(state),
        f"Clinician's question: {state['user_query']}",
        f"Clinical context: {state['task_summary']}" if state.get("task_summary") else "",
        "\n".join(state.get("thoughts") or []),
        image_section(state),
        tool_results_section(results),
        "\n".join(state.get("error_messages", [])),
    )
    return Prompt(user=user, system=BRIEF * brief + system("synthesize"))


def closed(schema: type[S], field: str, names: Sequence[str]) -> type[S]:
    """The schema with exactly these names to choose from in a field."""
    return _closed(schema, field, tuple(names))  # type: ignore[return-value]


@cache
def _closed(schema: type[BaseModel], field: str, names: tuple[str, ...]) -> type[BaseModel]:
    kind: Any = Literal[names]
    known = schema.model_fields[field]
    fields: Any = {field: (kind if known.is_required() else Optional[kind], known)}
    return create_model(schema.__name__, __base__=schema, __doc__=schema.__doc__, **fields)


def entity_hints(state: AgentState) -> str:
    """What code found in the question, as the stage 2 prompt words it."""
    request = state["request"]
    lines = [f"Detected patient ID: {patient['id']}" for patient in request["patients"]]
    if patient := state.get("active_patient"):
        lines.append(f"Detected patient ID: {patient['id']} ({patient['name']})")
    names = [patient["said"] for patient in request["patients"] if patient["search"]]
    lines += [f"Detected patient name: {name}" for name in [*names, *request["unclear"]]]
    lines += [f"Detected drug name: {item['said']}" for item in [*request["drugs"], *request["orders"]]]
    return "\n".join(dict.fromkeys(lines))


def tool_results_section(results: Sequence[ToolResult]) -> str:
    return "\n\n".join(f"[{item['tool_label']}]\n{item['formatted_result']}" for item in results if not item["error"])


def image_section(state: AgentState) -> str:
    findings = state.get("image_findings")
    return f"[Image Analysis]\n{findings['formatted']}" if findings and findings.get("formatted") else ""


def situation(state: AgentState) -> str:
    return join(
        _history(state),
        "An image is attached." if state.get("image") else "",
        image_section(state),
        f"Patient's record in brief:\n{state['patient_summary']}" if state.get("patient_summary") else "",
        f"Clinician's question: {state['user_query']}",
    )


def _history(state: AgentState) -> str:
    turns = state.get("history", [])[-HISTORY_TURNS:]
    lines = [f"Clinician: {turn['user']}\nAssistant: {turn['assistant']}" for turn in turns]
    if patient := state.get("active_patient"):
        lines.append(f"Current patient: {patient['name']} ({patient['id']})")
    return "Conversation so far:\n" + "\n".join(lines) if lines else ""


def earlier_results(state: AgentState) -> str:
    section = tool_results_section(state.get("tool_results", []))
    return f"Already done:\n{section}" if section else ""


def last_error(state: AgentState, tool_name: str) -> str:
    results = state.get("tool_results", [])
    failed = results[-1]["error"] if results and results[-1]["tool_name"] == tool_name else None
    fault = state.get("fault") or failed
    return f"The last attempt failed: {fault} Use different arguments." if fault else ""


def join(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
