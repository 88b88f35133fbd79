"""What MCP server and client agree on: a result as JSON, and the key that makes a retried write one write."""

import hashlib
import json
import secrets
import time
from typing import Any

import mcp_types as types
from pydantic import BaseModel, Field, TypeAdapter

from docgemma.errors import ErrorType
from docgemma.state import ToolResult
from docgemma.tools.base import Tool

WRITE_KEY = "docgemma/write_key"  # in a request's `_meta`: the same key never writes twice
IMAGE_DATA, IMAGE_PATH = "image_base64", "image_path"
MAX_BASE64 = 16_000_000  # characters: an image of 12 MB
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
