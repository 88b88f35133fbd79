"""The edge profile: the reader has understood the request, so code settles each question of the graph."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel

from docgemma.edge.quality import quality_of
from docgemma.errors import RETRYABLE
from docgemma.prompts import GENERATION, Prepared
from docgemma.rules.plan import planned
from docgemma.schemas import IntentClassification, ResultAssessment, RetryStrategy
from docgemma.state import AgentState, ToolResult

if TYPE_CHECKING:
    from docgemma.tools.base import Tool


class EdgeProfile:
    """What the reader and code decide where no language model is loaded."""

    name = "edge"
    reads = True
    synthesis = GENERATION["synthesize"]

    def intent(self, state: AgentState, tools: Sequence["Tool"]) -> BaseModel:
        steps = planned(state)
        asked = {
            "intent": "TOOL_NEEDED" if steps else "DIRECT",
            "task_summary": f"Clinician asks: {state['user_query'][:300]}",
            "suggested_tool": steps[0].tool if steps else None,
        }
        return IntentClassification.model_validate(asked)

    def assess(self, state: AgentState, result: ToolResult) -> BaseModel:
        first_line = result["formatted_result"].split("\n", 1)[0] or result["tool_label"]
        return ResultAssessment(quality=quality_of(state["user_query"], result), brief_summary=first_line[:240])

    def retry(self, state: AgentState, result: ToolResult) -> BaseModel:
        """A busy service is asked again as it was; anything else would need other arguments."""
        again = result["error_type"] in RETRYABLE
        return RetryStrategy(strategy="retry_same" if again else "retry_different_args")

    def copied_fields(self, tool: "Tool") -> frozenset[str]:
        return frozenset(tool.args.model_fields)

    def direct(self, state: AgentState) -> Prepared | None:
        return None  # `rules.direct` answers
