"""What crosses an MCP connection: a tool's definition and a result, both ways. No connection is made here.

Both ends share one model, `WireResult`: the server's output schema is made from it and the client checks against it.
"""

from typing import Any

import mcp_types as types
from pydantic import BaseModel, Field, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from docgemma.errors import ErrorType, ToolError
from docgemma.state import ToolResult
from docgemma.tools.base import Tool
from docgemma.tools.untrusted import clean, clean_text

# keys of `_meta`
CALL = "docgemma/call"  # in memory only: which of the caller's contexts a request belongs to
WRITE_KEY = "docgemma/write_key"  # the same key never writes twice

OPEN_WORLD = frozenset(
    {"check_drug_safety", "check_drug_interactions", "search_medical_literature", "find_clinical_trials"}
)
MAX_BASE64 = 16_000_000  # characters: an image of 12 MB
IMAGE_DATA, IMAGE_PATH = "image_base64", "image_path"


class WireResult(BaseModel):
    """A ToolResult without its internal bits."""

    ok: bool = Field(description="False: the tool failed, and error_type says how")
    label: str = Field(description="What a clinician calls the tool")
    args: dict[str, Any] = Field(description="The arguments of the call")
    text: str = Field(description="The result, or what went wrong, for a clinician")
    empty: bool = Field(default=False, description="The tool worked and found nothing")
    data: dict[str, Any] = Field(default_factory=dict, description="The result as data; empty for a failure")
    error_type: ErrorType | None = Field(default=None, description="How the tool failed")
    details: dict[str, Any] = Field(default_factory=dict, description="Of a failure: missing fields, choices, reason")
    source: str | None = Field(default=None, description="Where the facts come from")
    as_of: str | None = Field(default=None, description="ISO date of the facts")
    links: list[dict[str, str]] = Field(default_factory=list, description="Sources: title, url, id")


class WireDetails(BaseModel):
    """What the rules read of a failure. From a server that is not ours, nothing else is taken over."""

    missing_fields: list[str] = Field(default_factory=list, max_length=10)
    suggestions: list[str] = Field(default_factory=list, max_length=10)
    options: list[dict[str, str]] = Field(default_factory=list, max_length=20)
    entity: str = ""
    reason: str = ""


class PlainSchema(GenerateJsonSchema):
    """An optional argument is one that may be left out: no null type, no generated titles; clients vary in both."""

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> dict[str, Any]:
        plain = super().default_schema(schema)
        return {key: value for key, value in plain.items() if key != "default" or value is not None}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


OUTPUT_SCHEMA = {
    key: value
    for key, value in WireResult.model_json_schema(mode="serialization").items()
    if key not in ("title", "description")
}


def definition(tool: Tool, *, image_paths: bool) -> types.Tool:
    """A tool as a client sees it: fields in the order of the argument model, the measured wording as description.

    Args:
        image_paths: an image may also be named by its path; only where client and server share a file system.
    """
    schema = tool.args.model_json_schema(schema_generator=PlainSchema)
    schema.pop("title", None)
    if tool.name == "analyze_medical_image":
        schema["properties"] |= _image_fields(image_paths)
    return types.Tool(
        name=tool.name,
        title=tool.label,
        description=tool.description,
        input_schema=schema,
        output_schema=OUTPUT_SCHEMA,
        annotations=types.ToolAnnotations(
            title=tool.label,
            read_only_hint=not tool.writes,
            # a new entry overwrites nothing; yet an order that is out cannot be called back by another call
            destructive_hint=tool.writes,
            idempotent_hint=not tool.writes,
            open_world_hint=tool.name in OPEN_WORLD,
        ),
    )


def to_wire(result: ToolResult, *, inside: bool = False) -> types.CallToolResult:
    """A result as a client gets it. A failure is `isError`, with its type and its text for a clinician.

    Args:
        inside: the client is this program's own graph, which also counts the model's generations.
    """
    failed = result["error"] is not None
    data = result["result"] if inside else {key: value for key, value in result["result"].items() if key != "calls"}
    reason = result["details"].get("reason")
    text = f"{result['formatted_result']} {reason}" if reason else result["formatted_result"]
    body = WireResult(
        ok=not failed, label=result["tool_label"], args=result["args"], text=text, empty=result["empty"],
        data=data, error_type=result["error_type"], details=result["details"], source=result["source"],
        as_of=result["as_of"], links=result["links"],
    )  # fmt: skip
    dated = f", as of {result['as_of']}" if result["as_of"] else ""
    shown = f"{text}\nSource: {result['source']}{dated}." if result["source"] else text
    return types.CallToolResult(
        content=[types.TextContent(text=shown)], structured_content=body.model_dump(mode="json"), is_error=failed
    )


def from_wire(
    tool: Tool, args: dict[str, Any], answer: types.CallToolResult, seconds: float, *, trusted: bool
) -> ToolResult:
    """A server's answer as a ToolResult.

    Args:
        trusted: the server is ours, in this process. Otherwise every text is cleaned and bounded, and what models and
            clinicians read is made here from the data; the server's own prose is not used.

    Raises:
        ToolError: the failure that the server reports, or `invalid_response`.
    """
    body = _body(answer)
    if answer.is_error or not body.ok:
        error = ToolError(body.error_type or ErrorType.SERVER_ERROR, "reported by the MCP server")
        error.details = body.details if trusted else _known_details(body.details)
        raise error
    data = body.data if trusted else clean({key: value for key, value in body.data.items() if key != "calls"})
    try:
        text = body.text if trusted else tool.format(data)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ToolError(ErrorType.INVALID_RESPONSE, f"unusable data: {type(error).__name__}") from None
    return ToolResult(
        tool_name=tool.name, tool_label=tool.label, args=args, result=data, formatted_result=text, error=None,
        error_type=None, details={}, empty=body.empty, source=_short(body.source), as_of=_short(body.as_of),
        links=body.links if trusted else [_safe(link) for link in body.links[:50]],
        seconds=seconds, retries=0,
    )  # fmt: skip


def _body(answer: types.CallToolResult) -> WireResult:
    try:
        return WireResult.model_validate(answer.structured_content)
    except ValidationError:
        # without `from`: pydantic's text repeats the input, which may be patient data
        kind = ErrorType.SERVER_ERROR if answer.is_error else ErrorType.INVALID_RESPONSE
        raise ToolError(kind, "the MCP server's answer has another shape") from None


def _known_details(details: dict[str, Any]) -> dict[str, Any]:
    try:
        known = WireDetails.model_validate(details).model_dump(exclude_defaults=True)
    except ValidationError:
        return {}
    known["options"] = [{"id": item.get("id", ""), "label": item.get("label", "")} for item in known.get("options", [])]
    return clean({key: value for key, value in known.items() if value}, limit=200)


def _image_fields(image_paths: bool) -> dict[str, Any]:
    data = {
        "type": "string",
        "contentEncoding": "base64",
        "maxLength": MAX_BASE64,
        "description": "The image: a PNG, JPEG or DICOM file in base64",
    }
    path = {"type": "string", "maxLength": 1000, "description": "Or the path of such a file"}
    return {IMAGE_DATA: data} | ({IMAGE_PATH: path} if image_paths else {})


def _short(text: str | None) -> str | None:
    return clean_text(text, 80) if text else None


def _safe(link: dict[str, str]) -> dict[str, str]:
    """A link that can be shown: text cleaned, and an address only if it is one of the web."""
    kept = {key: clean_text(link.get(key, ""), 300) for key in ("title", "url", "id")}
    return kept if kept["url"].startswith(("https://", "http://")) else kept | {"url": ""}
