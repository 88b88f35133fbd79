"""The edge model's prompts: short, in one growing context, answered in bare lines.

Every call of a turn begins with the same text (history, question, entities, results so far) and ends with a one-line
task. llama.cpp therefore computes each part once a turn, and a call costs its task line and its answer.
The adapter is trained on exactly these functions.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field, create_model

from docgemma.edge.answers import mended
from docgemma.edge.evidence import focus
from docgemma.edge.quality import settled_quality
from docgemma.errors import RETRYABLE
from docgemma.llm.base import GenConfig, Prompt
from docgemma.prompts import GENERATION, Ask, Prepared, selection_schema
from docgemma.schemas import NO_TOOL, IntentClassification, ResultAssessment, RetryStrategy, Schema
from docgemma.state import AgentState, ToolResult

if TYPE_CHECKING:
    from docgemma.tools.base import Tool

QUESTION_CHARS = 1200
EVIDENCE_CHARS = 600  # of a result; `evidence.py` chooses which lines
HISTORY_CHARS = 160
LISTED = ("search_medical_literature", "find_clinical_trials")
QUALITIES = ("success_rich", "success_partial", "no_results")


class EdgeProfile:
    """One label, or one value a line; the rest of the JSON is written by code."""

    name = "edge"
    intent_names_tool = True  # one label says both
    synthesis = GenConfig(temperature=0.0, max_tokens=256)  # at 0.5 a 135M model corrupts names

    def intent(self, state: AgentState, tools: Sequence["Tool"]) -> Ask:
        labels = ("DIRECT", *(tool.name for tool in tools))
        schema = create_model("IntentLabel", __base__=Schema, label=(Literal[labels], ...))

        def finish(value: BaseModel) -> IntentClassification:
            direct = value.label == "DIRECT"
            return IntentClassification(
                intent="DIRECT" if direct else "TOOL_NEEDED",
                task_summary=f"Clinician asks: {state['user_query'][:300]}",
                suggested_tool=None if direct else value.label,
            )

        return self._ask("intent_classify", state, "intent", schema, finish)

    def select(self, state: AgentState, candidates: Sequence["Tool"], allow_none: bool) -> Ask:
        names = [tool.name for tool in candidates] + ([NO_TOOL] if allow_none else [])
        return self._ask("tool_select", state, "tool", selection_schema(names))

    def arguments(self, state: AgentState, tool: "Tool", schema: type[BaseModel]) -> Ask:
        return self._ask("tool_arguments", state, f"args {tool.name}: {', '.join(schema.model_fields)}", schema)

    def assess(self, state: AgentState, result: ToolResult) -> Ask:
        """What the content settles leaves one answer in the grammar; whether a title is to the point is judged."""
        settled = settled_quality(state["user_query"], result)
        labels = (settled,) if settled else QUALITIES
        schema = create_model("QualityLabel", __base__=Schema, quality=(Literal[labels], ...))

        def finish(value: BaseModel) -> ResultAssessment:
            first_line = result["formatted_result"].split("\n", 1)[0] or result["tool_label"]
            return ResultAssessment(quality=value.quality, brief_summary=first_line[:240])

        return self._ask("result_classify", state, "quality", schema, finish)

    def retry(self, state: AgentState, result: ToolResult) -> Ask:
        """The kind of error settles it: a busy service is asked again as it was, anything else otherwise.

        The grammar leaves one answer.
        """
        settled = "retry_same" if result["error_type"] in RETRYABLE else "retry_different_args"
        schema = create_model("RetryLabel", __base__=Schema, strategy=(Literal[settled], ...))
        return self._ask("error_handler", state, "retry", schema, lambda value: RetryStrategy(strategy=value.strategy))

    def synthesize(self, state: AgentState) -> Prompt:
        told = context(state)
        missed = [line for line in state.get("error_messages", []) if line not in told]
        return Prompt(user="\n".join([told, *(f"! {line}" for line in missed), "answer"]))

    def triage(self, state: AgentState) -> Ask:
        """The v2 graph's route; `intent` or `select` names the tool."""
        labels = ("direct", "lookup", "reasoning", "multi_step")
        return self._ask("triage", state, "route", create_model("Route", __base__=Schema, route=(Literal[labels], ...)))

    def decompose(self, state: AgentState, tools: Sequence["Tool"]) -> Ask:
        """The v1 and v2 graphs' plan: the tools in working order."""
        names = Literal[tuple(tool.name for tool in tools)]
        field = Field(min_length=1, max_length=5)
        return self._ask(
            "decompose", state, "steps", create_model("Steps", __base__=Schema, tools=(list[names], field))
        )

    def copied_fields(self, tool: "Tool") -> frozenset[str]:
        return frozenset(tool.args.model_fields)  # a 135M model copies; it does not compose

    def direct(self, state: AgentState) -> Prepared | None:
        """Never generated: a 135M model's medical knowledge is not to be trusted."""
        from docgemma.edge.direct import direct_answer

        return direct_answer(state["user_query"])

    def mend(self, text: str, state: AgentState) -> str:
        question, results = state["user_query"], state.get("tool_results", [])
        done = [(at, item) for at, item in enumerate(results) if not item["error"] and item["tool_name"] in LISTED]
        beside = frozenset(at for at, item in done if settled_quality(question, item) == "no_results")
        return mended(text, question, results, beside)

    @staticmethod
    def _ask(node: str, state: AgentState, task: str, schema: type[BaseModel], finish=lambda value: value) -> Ask:
        config = GENERATION.get(node, GENERATION["tool_select"])
        return Ask(node, Prompt(user=f"{context(state)}\n{task}"), schema, config, "lines", finish)


def context(state: AgentState) -> str:
    """The growing part: what was said, what code found, what the tools returned. Only ever appended to in a turn."""
    lines = []
    if history := state.get("history"):
        lines.append(f"Before: {_clip(history[-1]['user'], HISTORY_CHARS)}")
    if patient := state.get("turn_patient"):
        lines.append(f"Patient: {patient['name']} {patient['id']}")
    entities = state.get("extracted_entities") or {}
    if entities.get("has_image"):
        lines.append("Image: attached")
    lines.append(f"Q: {_clip(state['user_query'], QUESTION_CHARS)}")
    found = [*entities.get("patient_ids", []), *entities.get("patient_names", []), *entities.get("drug_mentions", [])]
    if found:
        lines.append(f"Found: {', '.join(found)}")
    for result in state.get("tool_results", []):
        lines.append(f"[{result['tool_label']}] {evidence(state, result)}")
    return "\n".join(lines)


def evidence(state: AgentState, result: ToolResult) -> str:
    """What the model reads of one result, on one line."""
    return focus(result["formatted_result"], state["user_query"], EVIDENCE_CHARS)


def _clip(text: str, limit: int) -> str:
    """The head of a text, cut at a line or word, on one line."""
    text = " | ".join(line.strip() for line in text.splitlines() if line.strip())
    return text if len(text) <= limit else text[:limit].rsplit(" ", 1)[0] + " …"
