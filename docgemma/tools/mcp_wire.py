"""What MCP server and client agree on: a result as JSON, and the question to a person before a write.

The SDK asks as the protocol's generation does it, and an answer counts only for the question as it was shown.
"""

import hashlib
import json
import secrets
import time
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.elicitation import AcceptedElicitation
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.exceptions import ToolError as UnusableAnswer
from mcp.server.mcpserver.resolve import Elicit, Resolve, build_resolver_plans, resolve_arguments
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field, TypeAdapter

from docgemma.ehr.base import PatientMatch
from docgemma.errors import ErrorType, ToolError
from docgemma.state import ToolResult
from docgemma.tools.base import Tool
from docgemma.tools.untrusted import clean_text

WRITE_KEY = "docgemma/write_key"  # in a request's `_meta`: the same key never writes twice
IMAGE_DATA, IMAGE_PATH = "image_base64", "image_path"
MAX_BASE64 = 16_000_000  # characters: an image of 12 MB
SAFETY = "Safety check"
FINDING = 1200  # characters, with the sentence of the label
CANNOT_ASK = "nothing was recorded, since this MCP client cannot ask a person to confirm. Use one with elicitation."
UNCONFIRMED = {
    "decline": "a person declined it, so nothing was written.",
    "cancel": "the question was cancelled, so nothing was written.",
    "unclear": "the answer was neither yes nor no, so nothing was written.",
}
RETRY_S = 600.0  # the same write, asked for again within this time, is a retry


class Details(BaseModel):
    """What the rules and a clinician need of a failure."""

    missing_fields: list[str] = []
    suggestions: list[str] = []
    options: list[dict[str, str]] = []
    entity: str = ""
    reason: str = ""
    header_text: str = ""


class WireResult(BaseModel):
    """A ToolResult as structured content."""

    ok: bool = Field(description="False: the tool failed, and error_type says how")
    label: str = Field(description="What a clinician calls the tool")
    args: dict[str, Any] = Field(description="The arguments of the call")
    text: str = Field(description="The result, or what went wrong, for a clinician")
    empty: bool = Field(default=False, description="The tool worked and found nothing")
    data: dict[str, Any] = Field(default={}, description="The result as data; empty for a failure")
    error_type: ErrorType | None = Field(default=None, description="How the tool failed")
    details: Details = Field(default=Details(), description="Of a failure")
    source: str | None = Field(default=None, description="Where the facts come from")
    as_of: str | None = Field(default=None, description="ISO date of the facts")
    links: list[dict[str, str]] = Field(default=[], description="Sources: title, url, id")


def output_schema(tool: Tool) -> dict[str, Any]:
    """What a call answers, `data` as this tool fills it. No key of it is required: a failure has none."""
    schema = WireResult.model_json_schema(mode="serialization")
    if tool.data:
        schema["properties"]["data"]["properties"] = _schema(tool.data)["properties"]
    return schema


def _schema(shape: Any) -> dict[str, Any]:
    """The JSON schema of a shape as `Tool.data` writes it."""
    if isinstance(shape, dict):
        properties = {key: _schema(item) for key, item in shape.items()}
        return {"type": "object", "properties": properties, "required": [*shape]}
    if isinstance(shape, list):
        return {"type": "array", "items": _schema(shape[0])}
    return TypeAdapter(shape).json_schema(mode="serialization")


def to_wire(result: ToolResult) -> types.CallToolResult:
    """A result as a client gets it. A failure is `isError`, with its type and its text for a clinician."""
    failed, text = result["error"] is not None, result["formatted_result"]
    body = WireResult.model_validate({
        **result, "ok": not failed, "label": result["tool_label"], "text": text,
        "data": {key: value for key, value in result["result"].items() if key != "calls"},
    })  # fmt: skip
    dated = f", as of {result['as_of']}" if result["as_of"] else ""
    shown = f"{text}\nSource: {result['source']}{dated}." if result["source"] else text
    return types.CallToolResult(
        content=[types.TextContent(text=shown)], structured_content=body.model_dump(mode="json"), is_error=failed
    )


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


class WriteKeys:
    """Keys that make a retried request write once, also where the client gives none of its own."""

    def __init__(self) -> None:
        self._recent: dict[str, tuple[float, str]] = {}

    def key(self, session: str, tool: str, args: dict[str, Any], given: object = None) -> str:
        if isinstance(given, str) and given:
            return hashlib.sha256(f"mcp/{tool}/{given}".encode()).hexdigest()[:32]
        now, write = time.monotonic(), json.dumps([session, tool, args], sort_keys=True)
        self._recent = {key: item for key, item in self._recent.items() if now - item[0] < RETRY_S}
        return self._recent.setdefault(write, (now, secrets.token_hex(16)))[1]
