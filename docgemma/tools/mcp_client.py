"""The tools of a remote MCP server (`DOCGEMMA_MCP_URL`) in place of the built-in ones, on the official SDK.

Each call opens a session of its own, in a thread of its own, and tries once. The server gets the arguments, a write's
key and an attached image; what it answers is untrusted text, cleaned, bounded and put into this program's own words.
"""

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.server.elicitation import render_elicitation_schema
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from docgemma.errors import ErrorType, ToolError
from docgemma.tools.base import Tool, Toolbox, ToolContext, ToolOutput
from docgemma.tools.mcp_confirm import FINDING, SAFETY, Confirmation
from docgemma.tools.mcp_wire import IMAGE_DATA, MAX_BASE64, WRITE_KEY, WireResult
from docgemma.tools.untrusted import clean, clean_text

PATIENCE = 3  # a call may take this many times the tool timeout: a live source, its retries, then the snapshot
IMAGE_LIMIT_S = 600.0  # a large model looks at an image
MAX_ANSWER = 8_000_000  # bytes of all that a server answers to one call


class RemoteToolbox(Toolbox):
    """A `Toolbox` whose calls go to an MCP server.

    Args:
        tools: the built-in ones; their labels, schemas and formatters are used here too.
        url: a streamable HTTP endpoint.
        token: its bearer token.
        limit_s: seconds a call may take; None derives it from `settings.tool_timeout`.
    """

    def __init__(self, tools: Toolbox, url: str, token: str | None = None, limit_s: float | None = None):
        super().__init__(tools)
        self.url, self._headers, self._limit_s = url, {"Authorization": f"Bearer {token}"} if token else {}, limit_s

    def run(self, tool: Tool, args: BaseModel, context: ToolContext) -> ToolOutput:
        """Let the server do the work. Its question before a write is answered with what the person here has decided."""
        usual = IMAGE_LIMIT_S if tool.needs == "image" else PATIENCE * context.settings.tool_timeout
        sent = {**args.model_dump(exclude_none=True), **_image(tool, context)}
        with start_blocking_portal() as portal:  # the caller's thread may have a loop that runs: a notebook's
            return _output(tool, portal.call(self._call, tool, sent, context, self._limit_s or usual))

    async def _call(self, tool: Tool, sent: dict[str, Any], context: ToolContext, limit: float) -> types.CallToolResult:
        person, refused, left = _Approval(context.approved), list[int](), [MAX_ANSWER]

        async def look_at(response: httpx2.Response) -> None:  # the SDK does not pass on an error status
            refused[:] = [response.status_code] if response.status_code >= 400 else []
            if response.headers.get("content-encoding", "identity") != "identity":  # a bomb, perhaps
                raise httpx2.DecodingError("the answer is compressed, which was not asked for")
            response.stream = _Bounded(response.stream, left)

        meta: Any = {WRITE_KEY: context.write_key} if context.write_key else None
        http = httpx2.AsyncClient(
            headers={**self._headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(limit),
            event_hooks={"response": [look_at]},
        )
        try:
            with anyio.fail_after(limit):
                async with http:
                    transport = streamable_http_client(self.url, http_client=http)
                    async with Client(transport, elicitation_callback=person.decide, cache=None) as client:
                        answer = await client.call_tool(tool.name, sent, read_timeout_seconds=limit, meta=meta)
        except Exception as error:
            cause: BaseException = error
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            kind = ErrorType.INVALID_RESPONSE if left[0] < 0 else _kind(cause, refused)
            raise ToolError(kind, f"MCP: {type(cause).__name__}") from None
        if person.unseen and answer.is_error:
            reason = "nothing was recorded, since the safety check now also finds: " + "; ".join(person.unseen)
            raise ToolError(ErrorType.NOT_PERMITTED, reason=reason)
        return answer


class _Bounded(httpx2.AsyncByteStream):
    """The body of a response, streamed or not, while the bytes that are `left` to the call last."""

    def __init__(self, body: Any, left: list[int]):
        self.body, self.left = body, left

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self.body:
            self.left[0] -= len(chunk)
            if self.left[0] < 0:
                raise httpx2.DecodingError("the answer is too long")
            yield chunk

    async def aclose(self) -> None:
        await self.body.aclose()


class _Approval:
    """Answer the server's question by what the person has decided already; anything else is declined."""

    def __init__(self, approved: tuple[str, ...] | None):
        self.seen = None if approved is None else {clean_text(item, FINDING) for item in approved}
        self.unseen: list[str] = []

    async def decide(self, context: ClientRequestContext, params: Any) -> types.ElicitResult:
        fields = (getattr(params, "requested_schema", None) or {}).get("properties")
        if self.seen is not None and fields == render_elicitation_schema(Confirmation)["properties"]:
            self.unseen = [item for item in shown_findings(params.message) if item not in self.seen]
            if not self.unseen:
                return types.ElicitResult(action="accept", content={"approve": True})
        return types.ElicitResult(action="decline")


def shown_findings(message: str) -> list[str]:
    """The safety findings in a server's question."""
    _, mark, rest = message.partition(f"\n{SAFETY}:\n")
    return [line.removeprefix("- ") for line in rest.splitlines()] if mark else []


STATUS = {
    401: ErrorType.NOT_PERMITTED, 403: ErrorType.NOT_PERMITTED, 429: ErrorType.RATE_LIMIT, 408: ErrorType.TIMEOUT,
    503: ErrorType.SERVICE_UNAVAILABLE,
}  # fmt: skip
CODES = {
    types.REQUEST_TIMEOUT: ErrorType.TIMEOUT,
    types.CONNECTION_CLOSED: ErrorType.SERVICE_UNAVAILABLE,
    types.INVALID_PARAMS: ErrorType.INVALID_ARGS,
    types.PARSE_ERROR: ErrorType.INVALID_RESPONSE,
    types.INVALID_REQUEST: ErrorType.INVALID_RESPONSE,  # the SDK's own word for a page that is no JSON
}


def _kind(error: BaseException, refused: list[int]) -> ErrorType:
    """Which of the known ways a failure of the connection is."""
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return ErrorType.TIMEOUT
    for status in refused:  # an address that is no MCP endpoint says 404
        return STATUS.get(status, ErrorType.SERVER_ERROR if status >= 500 else ErrorType.SERVICE_UNAVAILABLE)
    if isinstance(error, MCPError):
        return CODES.get(error.code, ErrorType.SERVER_ERROR)
    if isinstance(error, ValidationError | RuntimeError | ValueError | httpx2.DecodingError):
        return ErrorType.INVALID_RESPONSE
    return ErrorType.SERVICE_UNAVAILABLE


def _output(tool: Tool, answer: types.CallToolResult) -> ToolOutput:
    """A server's answer as what the tool found; the server's own prose is not used.

    Raises:
        ToolError: the failure that the server reports, or `invalid_response`.
    """
    try:
        body = WireResult.model_validate(answer.structured_content)
    except ValidationError:
        # without `from`: pydantic's text repeats the input, which may be patient data
        raise ToolError(ErrorType.SERVER_ERROR if answer.is_error else ErrorType.INVALID_RESPONSE) from None
    if answer.is_error or not body.ok:
        details = clean(body.details.model_dump(exclude_defaults=True), limit=200)
        raise ToolError(body.error_type or ErrorType.SERVER_ERROR, **details)
    data = clean({key: value for key, value in body.data.items() if key != "calls"})
    try:
        tool.format(data)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ToolError(ErrorType.INVALID_RESPONSE, f"unusable data: {type(error).__name__}") from None
    source, as_of = clean_text(body.source or "", 80), clean_text(body.as_of or "", 80) or None
    return ToolOutput(data, source, as_of, empty=body.empty, links=[_safe(link) for link in body.links[:50]])


def _safe(link: dict[str, str]) -> dict[str, str]:
    """A link that can be shown: text cleaned, and an address only if it is one of the web."""
    kept = {key: clean_text(link.get(key, ""), 300) for key in ("title", "url", "id")}
    return kept if kept["url"].startswith(("https://", "http://")) else kept | {"url": ""}


def _image(tool: Tool, context: ToolContext) -> dict[str, str]:
    """The attached image as an argument, for the tool that looks at one."""
    if tool.needs != "image" or context.image is None:
        return {}
    try:
        data = base64.b64encode(Path(context.image["path"]).read_bytes()).decode()
    except OSError:
        raise ToolError(ErrorType.INVALID_ARGS, reason="The image file cannot be read.") from None
    if len(data) > MAX_BASE64:
        reason = f"The image is too large to send; the limit is {MAX_BASE64 * 3 // 4 // 1_000_000} MB."
        raise ToolError(ErrorType.INVALID_ARGS, reason=reason)
    return {IMAGE_DATA: data}
