"""The tools through an MCP client session, with the interface of `Toolbox`: in memory, or on a server named by its URL.

The session lives on one event loop in a background thread, so that any thread may call. The SDK is imported at the
first call and not before. Nothing is raised: every outcome is a ToolResult.

In memory the caller's context stays in this process; a request carries only its number, in `_meta`. A remote server
gets the arguments, a write's key, and an attached image; its answers are untrusted text.
"""

import asyncio
import itertools
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from docgemma.errors import ErrorType, ToolError
from docgemma.state import ToolResult
from docgemma.tools.base import Tool, Toolbox, ToolContext
from docgemma.tools.mcp_session import Session, looks

if TYPE_CHECKING:
    from mcp import Client

Findings = Callable[[str, dict[str, Any], ToolContext], list[str] | None]

PATIENCE = 3  # a call may take this many times the tool timeout: a live source, its retries, then the snapshot
IMAGE_LIMIT_S = 600.0  # a large model looks at an image
GRACE_S = 2.0  # for the session itself to report that the limit has passed


class McpToolbox:
    """A `Toolbox` whose calls go through MCP.

    Args:
        tools: the ten; their labels, schemas and formatters are used here also where a remote server runs them.
        url: a streamable HTTP endpoint; None runs the tools in this process.
        token: bearer token of that endpoint.
        findings: in memory, check a write once more, right before it; new findings stop it. None trusts the check
            whose result the person has approved (`ToolContext.approved`).
        limit_s: seconds a call may take; None derives it from `settings.tool_timeout`.
    """

    def __init__(
        self,
        tools: Toolbox,
        *,
        url: str | None = None,
        token: str | None = None,
        findings: Findings | None = None,
        limit_s: float | None = None,
    ):
        self.tools = tools.tools
        self._toolbox, self.url, self._token, self._findings, self._limit_s = tools, url, token, findings, limit_s
        self._contexts: dict[int, ToolContext] = {}  # of the calls in progress, in memory
        self._numbers = itertools.count(1)
        self._start, self._process = threading.Lock(), os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._left: asyncio.AbstractEventLoop | None = None  # kept, since its descriptors are the parent's
        self._thread: threading.Thread | None = None
        self._session: Session | None = None

    def __getitem__(self, name: str) -> Tool:
        return self.tools[name]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools.values())

    def call(self, name: str, args: dict[str, Any], context: ToolContext) -> ToolResult:
        """Call one tool. A write is carried out only if `context.approved` holds the findings a person saw."""
        from docgemma.tools.mcp_wire import from_wire

        tool, start, number = self.tools[name], time.perf_counter(), next(self._numbers)
        limit = self._limit(tool, context)
        self._contexts[number] = context
        try:
            loop, session = self._background()
            waiting = asyncio.run_coroutine_threadsafe(session.call(tool, args, context, number, limit), loop)
            try:
                answer = waiting.result(limit + GRACE_S)
            except TimeoutError:
                waiting.cancel()
                raise ToolError(ErrorType.TIMEOUT, f"no answer within {limit:g} s") from None
            return from_wire(tool, args, answer, _since(start), trusted=self.url is None)
        except ToolError as error:
            return {**self.failed(name, args, error), "seconds": _since(start)}
        finally:
            del self._contexts[number]

    def failed(self, name: str, args: dict[str, Any], error: ToolError) -> ToolResult:
        """As `Toolbox.failed`."""
        return self._toolbox.failed(name, args, error)

    def warm(self) -> None:
        """Import the SDK in the background, so that the first call does not wait for it."""
        threading.Thread(target=self._background, daemon=True, name="docgemma-mcp-import").start()

    def close(self) -> None:
        """End the session. A later call opens a new one."""
        if self._process != os.getpid():
            return
        with self._start:
            loop, thread, session = self._loop, self._thread, self._session
            self._loop = self._thread = self._session = None
        if loop is None or thread is None or session is None:
            return
        asyncio.run_coroutine_threadsafe(session.close(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()

    def __enter__(self) -> "McpToolbox":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _limit(self, tool: Tool, context: ToolContext) -> float:
        if self._limit_s is not None:
            return self._limit_s
        return IMAGE_LIMIT_S if looks(tool) else PATIENCE * context.settings.tool_timeout

    def _background(self) -> "tuple[asyncio.AbstractEventLoop, Session]":
        if self._process != os.getpid():  # forked: the thread stayed behind, so the loop stands still
            self._left, self._start = self._loop, threading.Lock()
            self._loop = self._thread = self._session = None
            self._process = os.getpid()
        with self._start:
            if self._loop is None or self._session is None:
                self._session = Session(self._open, remote=self.url is not None)
                self._loop = asyncio.new_event_loop()
                # a daemon: a program that forgets to close this still ends
                self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="docgemma-mcp")
                self._thread.start()
            return self._loop, self._session

    @asynccontextmanager
    async def _open(self, session: "Session", limit: float) -> "AsyncIterator[Client]":
        from mcp import Client

        async with AsyncExitStack() as stack:
            target = await self._remote(stack, session, limit) if self.url else self._local()
            client = Client(target, elicitation_callback=session.decide, read_timeout_seconds=limit, cache=None)
            yield await stack.enter_async_context(client)

    def _local(self) -> Any:
        from docgemma.tools.mcp_tools import build_server
        from docgemma.tools.mcp_wire import CALL

        return build_server(self._toolbox, lambda caller, _: self._contexts[caller.meta[CALL]], findings=self._findings)

    async def _remote(self, stack: AsyncExitStack, session: "Session", limit: float) -> Any:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        http = httpx2.AsyncClient(
            headers=headers, timeout=httpx2.Timeout(limit), event_hooks={"response": [session.watch]}
        )
        return streamable_http_client(str(self.url), http_client=await stack.enter_async_context(http))


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 4)
