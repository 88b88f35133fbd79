"""One MCP client session on one event loop: opened at its first call, reopened after it broke, its failures typed."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docgemma.errors import ErrorType, ToolError
from docgemma.tools.base import Tool, ToolContext

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

ROUNDS = 4  # of questions within one call
MAX_ANSWER = 8_000_000  # bytes of one HTTP response of a remote server


class Session:
    """One client session, reopened after it broke. Everything here runs on the background loop."""

    def __init__(self, opener: Callable[["Session", float], Any], *, remote: bool):
        self._opener, self._remote = opener, remote
        self._client: Client | None = None
        self._keeper: asyncio.Task | None = None
        self._closing = asyncio.Event()
        self._opening, self._writing = asyncio.Lock(), asyncio.Lock()
        self._approved: tuple[str, ...] | None = None  # of the one write in progress
        self._unseen: list[str] = []
        self._status: int | None = None  # of the last HTTP response, where it was an error

    async def call(
        self, tool: Tool, args: dict[str, Any], context: ToolContext, number: int, limit: float
    ) -> "CallToolResult":
        """One call, tried once.

        Raises:
            ToolError: whatever went wrong on the way.
        """
        client = None
        try:
            async with asyncio.timeout(limit):
                client = await self._connected(limit)
            send = self._write if tool.writes else self._send
            return await send(client, tool, args, context, number, limit)
        except ToolError:
            raise
        except Exception as error:
            cause = _first(error)
            if client is self._client and self._broken(cause):
                await self.close()
            raise ToolError(self._kind(cause), f"MCP: {type(cause).__name__}") from None

    async def decide(self, ctx: Any, params: Any) -> Any:
        """Answer the server's question by what the person has decided already; anything else is declined."""
        from mcp.types import ElicitResult

        from docgemma.tools.mcp_confirm import APPROVE, FORM, one_line, shown_findings

        if self._approved is None or getattr(params, "requested_schema", None) != FORM:
            return ElicitResult(action="decline")
        seen = {one_line(item) for item in self._approved}
        self._unseen = [item for item in shown_findings(params.message) if item not in seen]
        if self._unseen:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={APPROVE: True})

    async def watch(self, response: Any) -> None:
        """Remember an error status, which the SDK does not pass on, and bound what is read."""
        self._status = response.status_code if response.status_code >= 400 else None
        response.stream = _bounded(response.stream)

    async def close(self) -> None:
        """Leave the server. The next call opens a new session."""
        keeper, self._client, self._keeper = self._keeper, None, None
        self._closing.set()
        if keeper is not None:
            await asyncio.wait({keeper}, timeout=3)
            keeper.cancel()

    async def _write(
        self, client: "Client", tool: Tool, args: dict[str, Any], context: ToolContext, number: int, limit: float
    ) -> "CallToolResult":
        async with self._writing:  # so that a question can only be about this write
            self._approved, self._unseen = context.approved, []
            try:
                answer = await self._send(client, tool, args, context, number, limit)
            finally:
                self._approved = None
            return _explained(answer, self._unseen)

    async def _send(
        self, client: "Client", tool: Tool, args: dict[str, Any], context: ToolContext, number: int, limit: float
    ) -> "CallToolResult":
        from docgemma.tools.mcp_wire import CALL, WRITE_KEY

        if not self._remote:
            return await self._rounds(client, tool.name, args, {CALL: number}, limit)
        meta = {WRITE_KEY: context.write_key} if context.write_key else None
        return await self._rounds(client, tool.name, _with_image(tool, args, context), meta, limit)

    async def _rounds(
        self, client: "Client", name: str, args: dict[str, Any], meta: dict[str, Any] | None, limit: float
    ) -> "CallToolResult":
        """The call, and in the newer protocol once more with the answer to each question.

        Not `client.call_tool`: it checks the answer with jsonschema, whose import costs seconds where its format
        checkers are installed. `WireResult` checks the same.
        """
        from mcp import types

        responses = state = None
        for _ in range(ROUNDS):
            params = types.CallToolRequestParams(
                name=name, arguments=args, input_responses=responses, request_state=state, _meta=meta
            )
            answer = await client.session.send_request(
                types.CallToolRequest(params=params), _answers(), request_read_timeout_seconds=limit
            )
            if isinstance(answer, types.CallToolResult):
                return answer
            asked = answer.input_requests or {}
            responses = {key: await self.decide(None, request.params) for key, request in asked.items()}
            state = answer.request_state
        raise ToolError(ErrorType.INVALID_RESPONSE, "the MCP server asks on and on")

    async def _connected(self, limit: float) -> "Client":
        async with self._opening:
            if self._client is None:
                self._closing = asyncio.Event()
                ready = asyncio.get_running_loop().create_future()
                self._keeper = asyncio.create_task(self._keep(ready, limit))
                try:
                    self._client = await ready
                except asyncio.CancelledError:
                    self._keeper.cancel()
                    raise
            return self._client

    async def _keep(self, ready: asyncio.Future, limit: float) -> None:
        """Hold the session open: what a task has entered, the same task has to leave."""
        try:
            async with self._opener(self, limit) as client:
                ready.set_result(client)
                await self._closing.wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
        finally:
            if not ready.done():
                ready.cancel()
            if self._keeper is asyncio.current_task():
                self._client = self._keeper = None

    def _broken(self, error: BaseException) -> bool:
        """Whether the next call needs a new session. A slow or refused call does not spoil it for the others."""
        from mcp.shared.exceptions import MCPError
        from mcp.types import CONNECTION_CLOSED, INVALID_PARAMS, REQUEST_TIMEOUT

        if isinstance(error, MCPError):
            fine = (REQUEST_TIMEOUT, INVALID_PARAMS)
            return error.code not in fine if self._remote else error.code == CONNECTION_CLOSED
        return self._remote and not isinstance(error, TimeoutError)

    def _kind(self, error: BaseException) -> ErrorType:
        """Which of the known ways a failure of the connection is."""
        import httpx2
        from mcp.shared.exceptions import MCPError
        from mcp.types import CONNECTION_CLOSED, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, REQUEST_TIMEOUT
        from pydantic import ValidationError

        if isinstance(error, TimeoutError | httpx2.TimeoutException):
            return ErrorType.TIMEOUT
        if self._status is not None:
            return _status_kind(self._status)
        if isinstance(error, MCPError):
            known = {
                REQUEST_TIMEOUT: ErrorType.TIMEOUT,
                CONNECTION_CLOSED: ErrorType.SERVICE_UNAVAILABLE,
                INVALID_PARAMS: ErrorType.INVALID_ARGS,
                PARSE_ERROR: ErrorType.INVALID_RESPONSE,
                INVALID_REQUEST: ErrorType.INVALID_RESPONSE,  # the SDK's own word for a page that is no JSON
            }
            return known.get(error.code, ErrorType.SERVER_ERROR)
        if isinstance(error, ValidationError | RuntimeError | ValueError | httpx2.DecodingError):
            return ErrorType.INVALID_RESPONSE
        return ErrorType.SERVICE_UNAVAILABLE


@cache
def _answers() -> "TypeAdapter[CallToolResult | InputRequiredResult]":
    from mcp.types import CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

    return TypeAdapter(CallToolResult | InputRequiredResult)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _status_kind(status: int) -> ErrorType:
    if status in (401, 403):
        return ErrorType.NOT_PERMITTED
    if status == 429:
        return ErrorType.RATE_LIMIT
    if status == 408:
        return ErrorType.TIMEOUT
    if status >= 500 and status != 503:
        return ErrorType.SERVER_ERROR
    return ErrorType.SERVICE_UNAVAILABLE  # 503, and an address that is no MCP endpoint


def _explained(answer: "CallToolResult", unseen: list[str]) -> "CallToolResult":
    """Say why an approved write was stopped: the safety check found more than the person had seen."""
    if unseen and answer.is_error and isinstance(answer.structured_content, dict):
        reason = "Nothing was recorded: the safety check now also finds: " + "; ".join(unseen)
        answer.structured_content["details"] = {"reason": reason}
    return answer


def _with_image(tool: Tool, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
    from docgemma.tools.mcp_wire import IMAGE_DATA, MAX_BASE64

    if not looks(tool) or context.image is None:
        return args
    try:
        data = base64.b64encode(Path(context.image["path"]).read_bytes()).decode()
    except OSError:
        raise ToolError(ErrorType.INVALID_ARGS, "no image file", reason="The image file cannot be read.") from None
    if len(data) > MAX_BASE64:
        reason = f"The image is too large to send; the limit is {MAX_BASE64 * 3 // 4 // 1_000_000} MB."
        raise ToolError(ErrorType.INVALID_ARGS, "image too large", reason=reason)
    return {**args, IMAGE_DATA: data}


def _bounded(stream: Any) -> Any:
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            read = 0
            async for chunk in stream:
                read += len(chunk)
                if read > MAX_ANSWER:
                    raise httpx2.DecodingError("the answer is too long")
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


def looks(tool: Tool) -> bool:
    """Whether a tool looks at an image."""
    return tool.name == "analyze_medical_image"
