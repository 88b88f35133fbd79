"""What the model is told, and how each node samples. The wording of `FullProfile` is the measured configuration
(v3 spec, sections 7, 8 and 16).

A profile turns the state into an `Ask` for each of the graph's calls. Which profile is used is a property of the
loaded model: MedGemma and other chat models get `FullProfile`, the edge model `docgemma.edge.prompts.EdgeProfile`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import BaseModel, create_model

from docgemma.llm.base import GenConfig, Prompt
from docgemma.schemas import NO_TOOL, IntentClassification, ResultAssessment, RetryStrategy, Schema
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


@dataclass(frozen=True)
class Ask:
    """One constrained call: the prompt, what may come back, and how it becomes what the graph works with."""

    node: str
    prompt: Prompt
    schema: type[BaseModel]
    config: GenConfig
    finish: Callable[[BaseModel], BaseModel] = field(default=lambda value: value)


@dataclass(frozen=True)
class Prepared:
    """A direct answer that was written beforehand, with where it can be checked."""

    text: str
    sources: list[dict[str, Any]] = field(default_factory=list)


class PromptProfile(Protocol):
    """The graph's six calls to a model. `copied_fields` are the arguments that must be spans of the input."""

    name: str
    reads: bool  # the reader's plan is followed and its findings are the answer; no model is called
    synthesis: GenConfig

    def intent(self, state: AgentState, tools: Sequence["Tool"]) -> Ask | BaseModel: ...

    def select(self, state: AgentState, candidates: Sequence["Tool"], allow_none: bool) -> Ask: ...

    def arguments(self, state: AgentState, tool: "Tool", schema: type[BaseModel]) -> Ask: ...

    def assess(self, state: AgentState, result: ToolResult) -> Ask | BaseModel: ...

    def retry(self, state: AgentState, result: ToolResult) -> Ask | BaseModel: ...

    def synthesize(self, state: AgentState) -> Prompt: ...

    def copied_fields(self, tool: "Tool") -> frozenset[str]: ...

    def direct(self, state: AgentState) -> "Prepared | None":
        """An answer to a direct question that needs no generation, or None."""


# arguments that are copied or closed; free text (a note, a query, what to look for in an image) may be composed
COPIED = frozenset(
    {
        "drug_name", "drug_names", "name", "patient_id", "medication_name", "dosage", "frequency", "notes",
        "substance", "severity", "condition", "status",
    }
)  # fmt: skip


class FullProfile:
    """The measured prompts, for MedGemma and any chat model."""

    name = "full"
    reads = False
    synthesis = GENERATION["synthesize"]

    def intent(self, state: AgentState, tools: Sequence["Tool"]) -> Ask:
        return self._ask("intent_classify", INTENT_SYSTEM, _situation(state), IntentClassification)

    def select(self, state: AgentState, candidates: Sequence["Tool"], allow_none: bool) -> Ask:
        suggested = state.get("suggested_tool")
        example = next((tool for tool in candidates if tool.name == suggested), candidates[0])
        system = SELECT_SYSTEM.format(
            full_desc_tool_list="\n\n".join(f"- {tool.full_description}" for tool in candidates),
            matched_example_query=example.example,
            matched_example_tool=example.name,
        )
        names = [tool.name for tool in candidates] + ([NO_TOOL] if allow_none else [])
        user = _join(_situation(state), f"Task: {state.get('task_summary', '')}", _earlier_results(state))
        if allow_none:
            user += f'\n\nIf nothing more is needed, answer "{NO_TOOL}".'
        return self._ask("tool_select", system, user, selection_schema(names), prefix=ANALYTICAL_PREFIX)

    def arguments(self, state: AgentState, tool: "Tool", schema: type[BaseModel]) -> Ask:
        system = ARGUMENTS_SYSTEM.format(
            tool_name=tool.name, tool_full_description=tool.description,
            user_query=state["user_query"], entity_hints=entity_hints(state),
        )  # fmt: skip
        user = _join(_history(state), _earlier_results(state), _last_error(state, tool.name)) or state["user_query"]
        return self._ask("tool_arguments", system, user, schema)

    def assess(self, state: AgentState, result: ToolResult) -> Ask:
        text = ASSESS_SYSTEM.format(
            user_query=state["user_query"], task_summary=state.get("task_summary", ""),
            tool_label=result["tool_label"], formatted_tool_result=result["formatted_result"],
        )  # fmt: skip
        return self._ask("result_classify", "", text, ResultAssessment)

    def retry(self, state: AgentState, result: ToolResult) -> Ask:
        user = f"Clinician's question: {state['user_query']}\n\n[{result['tool_label']}] {result['formatted_result']}"
        return self._ask("error_handler", RETRY_SYSTEM, user, RetryStrategy)

    def synthesize(self, state: AgentState) -> Prompt:
        results = state.get("tool_results", [])
        system = SYNTHESIZE_SYSTEM
        if len(results) == 1 and results[0]["tool_name"] in BRIEF_TOOLS:
            system = BRIEF + system
        user = _join(
            _history(state),
            f"Clinician's question: {state['user_query']}",
            f"Clinical context: {state['task_summary']}" if state.get("task_summary") else "",
            image_section(state),
            tool_results_section(results),
            "\n".join(state.get("error_messages", [])),
        )
        return Prompt(user=user, system=system)

    def copied_fields(self, tool: "Tool") -> frozenset[str]:
        return COPIED & set(tool.args.model_fields)

    def direct(self, state: AgentState) -> Prepared | None:
        return None

    @staticmethod
    def _ask(node: str, system: str, user: str, schema: type[BaseModel], prefix: str = "") -> Ask:
        return Ask(node, Prompt(user=user, system=system, prefix=prefix), schema, GENERATION[node])


def selection_schema(names: Sequence[str]) -> type[Schema]:
    """`ToolSelection` for exactly these names: the model chooses among what can apply."""
    return create_model("ToolSelection", __base__=Schema, tool_name=(Literal[tuple(names)], ...))


def entity_hints(state: AgentState) -> str:
    """What code found in the question, as the stage 2 prompt words it."""
    found = state.get("extracted_entities") or {}
    lines = [f"Detected patient ID: {item}" for item in found.get("patient_ids", [])]
    if patient := state.get("active_patient"):
        lines.append(f"Detected patient ID: {patient['id']} ({patient['name']})")
    lines += [f"Detected patient name: {item}" for item in found.get("patient_names", [])]
    lines += [f"Detected drug name: {item}" for item in found.get("drug_mentions", [])]
    return "\n".join(dict.fromkeys(lines))


def tool_results_section(results: Sequence[ToolResult]) -> str:
    return "\n\n".join(f"[{item['tool_label']}]\n{item['formatted_result']}" for item in results if not item["error"])


def image_section(state: AgentState) -> str:
    findings = state.get("image_findings")
    return f"[Image Analysis]\n{findings['formatted']}" if findings and findings.get("formatted") else ""


def _situation(state: AgentState) -> str:
    entities = state.get("extracted_entities") or {}
    return _join(
        _history(state),
        "An image is attached." if entities.get("has_image") else "",
        image_section(state),
        f"Clinician's question: {state['user_query']}",
    )


def _history(state: AgentState) -> str:
    turns = state.get("history", [])[-HISTORY_TURNS:]
    lines = [f"Clinician: {turn['user']}\nAssistant: {turn['assistant']}" for turn in turns]
    if patient := state.get("active_patient"):
        lines.append(f"Current patient: {patient['name']} ({patient['id']})")
    return "Conversation so far:\n" + "\n".join(lines) if lines else ""


def _earlier_results(state: AgentState) -> str:
    section = tool_results_section(state.get("tool_results", []))
    return f"Already done:\n{section}" if section else ""


def _last_error(state: AgentState, tool_name: str) -> str:
    results = state.get("tool_results", [])
    failed = results[-1] if results and results[-1]["error"] and results[-1]["tool_name"] == tool_name else None
    return f"The last attempt failed: {failed['error']} Use different arguments." if failed else ""


def _join(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
