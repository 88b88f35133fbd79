"""How an MCP client is made to ask a person before a write.

The SDK asks as the protocol's generation does it, and an answer counts only for the question as it was shown.
"""

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.elicitation import AcceptedElicitation
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.exceptions import ToolError as UnusableAnswer
from mcp.server.mcpserver.resolve import Elicit, Resolve, build_resolver_plans, resolve_arguments
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field

from docgemma.ehr.base import PatientMatch
from docgemma.errors import ErrorType, ToolError
from docgemma.tools.base import Tool
from docgemma.tools.untrusted import clean_text

SAFETY = "Safety check"
FINDING = 1200  # characters, with the sentence of the label
CANNOT_ASK = "nothing was recorded, since this MCP client cannot ask a person to confirm. Use one with elicitation."
UNCONFIRMED = {
    "decline": "a person declined it, so nothing was written.",
    "cancel": "the question was cancelled, so nothing was written.",
    "unclear": "the answer was neither yes nor no, so nothing was written.",
}


class Confirmation(BaseModel):
    """The form that a person fills in before a write."""

    approve: bool = Field(
        strict=True, title="Record this entry",
        description="Yes writes it into the patient's record; no leaves the record as it is.",
    )  # fmt: skip


def question(tool: Tool, args: dict[str, Any], patient: PatientMatch, findings: list[str] | None) -> str:
    """Preview a write: whose record, what goes into it, and what its safety check found, the worst first.

    Args:
        findings: None where nothing is checked.
    """
    lines = [
        f"{tool.label} for {clean_text(patient.name, 120)}",
        f"Born {patient.birth_date or '(not recorded)'}, patient ID {patient.id}",
        "Will be written:",
    ]
    lines += [
        f"- {name.replace('_', ' ').capitalize()}: {clean_text(str(value), 400)}"
        for name, value in args.items()
        if name != "patient_id" and value not in (None, "")
    ]
    if findings:
        lines += [f"{SAFETY}:", *(f"- {clean_text(item, FINDING)}" for item in findings)]
    elif findings is not None:
        lines.append(f"{SAFETY}: no conflict was found in the record and the drug data.")
    return "\n".join(lines)


async def confirmed(
    ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams, message: str
) -> str | types.InputRequiredResult:
    """Ask a person through the client; in the newer protocol the call ends with the question and comes again.

    Returns:
        "accept", or a key of `UNCONFIRMED`.

    Raises:
        ToolError: `not_permitted`, the client cannot ask a person.
    """

    async def ask() -> Elicit[Confirmation]:
        return Elicit(message, Confirmation)

    asked = {"confirm": (Resolve(ask), True)}
    context: Context[Any, Any] = Context(request_context=ctx, input_params=params)
    try:
        answers = await resolve_arguments(asked, build_resolver_plans(asked, set()), {}, context)
    except MCPError as error:
        raise ToolError(ErrorType.NOT_PERMITTED, f"elicitation: {error.code}", reason=CANNOT_ASK) from None
    except UnusableAnswer:  # the form came back filled in wrongly: no yes
        return "unclear"
    if isinstance(answers, types.InputRequiredResult):
        return answers
    answer = answers["confirm"]
    if isinstance(answer, AcceptedElicitation):
        return "accept" if answer.data.approve else "decline"
    return str(answer.action)
