"""What a language model is told at each node, and how it samples. The wording is the measured configuration (v3 spec,
sections 7, 8 and 16). The edge model is asked nothing: `Context.reads`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, Optional, TypeVar

from pydantic import BaseModel, create_model

from docgemma.llm.base import GenConfig, Prompt
from docgemma.schemas import NO_TOOL, IntentClassification, ResultAssessment, RetryStrategy, ToolSelection
from docgemma.state import AgentState, ToolResult

if TYPE_CHECKING:
    from docgemma.tools.base import Tool

GENERATION = {
    "input_assembly": GenConfig(temperature=0.3, max_tokens=512),
    "intent_classify": GenConfig(temperature=0.0, max_tokens=256),
    "tool_select": GenConfig(temperature=0.0, max_tokens=64),
    "tool_arguments": GenConfig(temperature=0.0, max_tokens=128),
    "result_classify": GenConfig(temperature=0.0, max_tokens=128),
    "error_handler": GenConfig(temperature=0.0, max_tokens=64),
    "synthesize": GenConfig(temperature=0.5, max_tokens=256),
    # v1 and v2
    "complexity_router": GenConfig(temperature=0.0, max_tokens=128),
    "triage": GenConfig(temperature=0.0, max_tokens=128),
    "decompose": GenConfig(temperature=0.0, max_tokens=512),
    "plan_tool": GenConfig(temperature=0.0, max_tokens=96),
    "extract_needs": GenConfig(temperature=0.0, max_tokens=192),
    "think": GenConfig(temperature=0.0, max_tokens=1024),
}

HISTORY_TURNS = 4  # the last 2-4 turns; v3 spec, section 4, node 1
ANALYTICAL_PREFIX = "Analyzing the task requirements, "

INTENT_SYSTEM = """\
You are a clinical decision-support assistant integrated with an electronic health record
system and medical knowledge tools.

Your task: classify the user's query and provide a brief clinical summary.

Classification rules:
- DIRECT: General medical questions, greetings, thanks, or questions answerable from
  medical knowledge alone (e.g., "What is hypertension?", "Hello", "Explain metformin MOA")
- TOOL_NEEDED: Requests requiring specific patient data, drug safety lookups, literature
  searches, clinical trial searches, prescriptions, allergy documentation, clinical notes,
  or medical image analysis

Provide a task_summary that captures the clinical context in ~50 words or fewer.
If TOOL_NEEDED, suggest the most relevant tool name."""

SELECT_SYSTEM = """\
You are a clinical tool router. Select the single most appropriate tool for the task.

Available tools:
{full_desc_tool_list}

Example:
User: "{matched_example_query}"
Tool: {matched_example_tool}

Now select the tool for the current task."""

ARGUMENTS_SYSTEM = """\
Extract the arguments for the {tool_name} tool from the user's request.

Tool: {tool_name}
Description: {tool_full_description}

User query: {user_query}
{entity_hints}

Fill in the required arguments."""

ASSESS_SYSTEM = """\
You are evaluating a tool result. Classify the quality of the data returned.

User's original question: {user_query}
Clinical context: {task_summary}

Tool used: {tool_label}
Result:
{formatted_tool_result}

Classify the result quality and provide a brief summary."""

RETRY_SYSTEM = """\
A step of a clinical task failed. Choose how to retry it.

- retry_same: a temporary failure (timeout, busy, unavailable); the same request may succeed
- retry_different_args: the request itself was at fault (nothing found, invalid); change the arguments"""

SYNTHESIZE_SYSTEM = """\
You are a clinical decision-support assistant. Provide a clear, concise response to the
clinician based on the information below.

Guidelines:
- Include only the most critical findings
- If information was unavailable, state this clearly without speculating
- Do not reference any system internals, tool names, or databases
- Use standard medical terminology appropriate for a clinical audience"""

BRIEF = "Include only the most critical findings.\n\n"
BRIEF_TOOLS = frozenset({"check_drug_safety", "search_medical_literature"})

S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True)
class Ask(Generic[S]):
    """One constrained call: what the model is told at a node, and the schema of what may come back."""

    node: str
    prompt: Prompt
    schema: type[S]


def ask_intent(state: AgentState, tools: Sequence["Tool"]) -> Ask[IntentClassification]:
    schema = intent_schema(tuple(tool.name for tool in tools))
    return Ask("intent_classify", Prompt(user=situation(state), system=INTENT_SYSTEM), schema)


def ask_tool(state: AgentState, candidates: Sequence["Tool"], allow_none: bool) -> Ask[ToolSelection]:
    """Which of the candidates; `allow_none`: or nothing more."""
    suggested = state.get("suggested_tool")
    example = next((tool for tool in candidates if tool.name == suggested), candidates[0])
    system = SELECT_SYSTEM.format(
        full_desc_tool_list="\n\n".join(f"- {tool.full_description}" for tool in candidates),
        matched_example_query=example.example,
        matched_example_tool=example.name,
    )
    names = [tool.name for tool in candidates] + ([NO_TOOL] if allow_none else [])
    user = join(situation(state), f"Task: {state.get('task_summary', '')}", earlier_results(state))
    if allow_none:
        user += f'\n\nIf nothing more is needed, answer "{NO_TOOL}".'
    return Ask("tool_select", Prompt(user=user, system=system, prefix=ANALYTICAL_PREFIX), selection_schema(names))


def ask_arguments(state: AgentState, tool: "Tool", schema: type[S]) -> Ask[S]:
    """The tool's arguments that code could not settle: the fields of `schema`."""
    system = ARGUMENTS_SYSTEM.format(
        tool_name=tool.name, tool_full_description=tool.description,
        user_query=state["user_query"], entity_hints=entity_hints(state),
    )  # fmt: skip
    user = join(_history(state), earlier_results(state), last_error(state, tool.name)) or state["user_query"]
    return Ask("tool_arguments", Prompt(user=user, system=system), schema)


def ask_quality(state: AgentState, result: ToolResult) -> Ask[ResultAssessment]:
    text = ASSESS_SYSTEM.format(
        user_query=state["user_query"], task_summary=state.get("task_summary", ""),
        tool_label=result["tool_label"], formatted_tool_result=result["formatted_result"],
    )  # fmt: skip
    return Ask("result_classify", Prompt(user=text), ResultAssessment)


def ask_retry(state: AgentState, result: ToolResult) -> Ask[RetryStrategy]:
    user = f"Clinician's question: {state['user_query']}\n\n[{result['tool_label']}] {result['formatted_result']}"
    return Ask("error_handler", Prompt(user=user, system=RETRY_SYSTEM), RetryStrategy)


def answer_prompt(state: AgentState) -> Prompt:
    """The prompt of the one free text, sampled with `GENERATION["synthesize"]`."""
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
    return Prompt(user=user, system=BRIEF + SYNTHESIZE_SYSTEM if brief else SYNTHESIZE_SYSTEM)


@cache
def intent_schema(names: tuple[str, ...]) -> type[IntentClassification]:
    """`IntentClassification` with exactly these tools to suggest."""
    closed: Any = Optional[Literal[names]]
    field = IntentClassification.model_fields["suggested_tool"]
    return create_model(
        "IntentClassification", __base__=IntentClassification, __doc__=IntentClassification.__doc__,
        suggested_tool=(closed, field),
    )  # fmt: skip


def selection_schema(names: Sequence[str]) -> type[ToolSelection]:
    """`ToolSelection` for exactly these names: the model chooses among what can apply."""
    closed: Any = Literal[tuple(names)]
    return create_model("ToolSelection", __base__=ToolSelection, tool_name=(closed, ...))


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
