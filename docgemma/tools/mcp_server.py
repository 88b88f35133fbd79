"""`docgemma mcp`: the tools for any MCP client, over stdio, or over streamable HTTP behind a bearer token.

Over stdio the client started this process and is as trusted as the person who runs it. Over HTTP it is somebody else:
a token on every request, on 127.0.0.1 only, and the SDK checks the Host and Origin headers.
"""

import asyncio
import secrets
import sys
import threading
from contextlib import suppress

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.stdio import stdio_server

from docgemma.ehr.open import open_store
from docgemma.errors import ConfigError
from docgemma.knowledge import open_knowledge
from docgemma.listening import listen
from docgemma.llm import load_llm
from docgemma.llm.base import LLM
from docgemma.settings import Settings
from docgemma.tools import toolbox
from docgemma.tools.base import Findings, ToolContext
from docgemma.tools.mcp_tools import build_server

HOST, PATH, PORT = "127.0.0.1", "/mcp", 8765
MAX_BODY = 17 * 1024 * 1024  # a request with an image
MIN_TOKEN = 16


def run_mcp(findings: Findings, http: bool = False, port: int = PORT) -> None:
    """The command: serve until the client leaves (stdio) or Ctrl-C (HTTP).

    Args:
        findings: the safety check of a write, shown to the person who confirms it; None where nothing is checked.

    Raises:
        UsageError, ConfigError, StoreError: what cannot be, and what to do.
    """
    settings = Settings()
    with suppress(KeyboardInterrupt):
        serve_http(settings, findings, port) if http else serve_stdio(settings, findings)


def serve_stdio(settings: Settings, findings: Findings) -> None:
    """Serve one client on stdin and stdout. stdout carries the protocol and nothing else."""

    async def serve() -> None:
        server = build_server(toolbox(), services.context, findings=findings, image_paths=True)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    with Services(settings) as services:
        asyncio.run(serve())


def serve_http(settings: Settings, findings: Findings, port: int = PORT) -> None:
    """Serve `http://127.0.0.1:PORT/mcp` until Ctrl-C; port 0 takes a free one. Address and token go to stderr.

    Raises:
        UsageError: the port cannot be used. ConfigError: the token is too short.
    """
    token = settings.mcp_token or secrets.token_urlsafe(32)
    if len(token) < MIN_TOKEN:
        raise ConfigError(
            f"The MCP token is shorter than {MIN_TOKEN} characters.",
            hint="Set DOCGEMMA_MCP_TOKEN to a longer one, or unset it and one is made.",
        )

    class OneToken:
        async def verify_token(self, given: str) -> AccessToken | None:
            # bytes: a str outside ASCII makes compare_digest raise
            fits = secrets.compare_digest(given.encode(), token.encode())
            return AccessToken(token=given, client_id="mcp-client", scopes=[]) if fits else None

    with Services(settings) as services, listen(HOST, port) as listener:
        _say(f"DocGemma's tools are at http://{HOST}:{listener.getsockname()[1]}{PATH}")
        if not settings.mcp_token:
            _say(f"Token of this run: {token}")
            _say("Clients send it as: Authorization: Bearer TOKEN. DOCGEMMA_MCP_TOKEN sets a lasting one.")
        server = build_server(toolbox(), services.context, findings=findings)
        app = server.streamable_http_app(
            streamable_http_path=PATH, max_request_body_size=MAX_BODY, host=HOST, token_verifier=OneToken(),
            # no authorization server: the token is handed over by whoever started this one
            auth=AuthSettings.model_validate({"issuer_url": f"http://{HOST}", "resource_server_url": None}),
        )  # fmt: skip
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=3)
        uvicorn.Server(config).run(sockets=[listener])


class Services:
    """What the tools of this process use. Records and knowledge are opened now, so that a wrong setting ends the
    start with its line; the model only when there is an image to look at."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.store, self.knowledge = open_store(settings), open_knowledge(settings)
        self._llm: LLM | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> "Services":
        return self

    def __exit__(self, *exc: object) -> None:
        if self._llm is not None:
            self._llm.close()
        self.knowledge.close()
        self.store.close()

    def context(self, session: str, client: str, needs_model: bool) -> ToolContext:
        return ToolContext(
            settings=self.settings, store=self.store, knowledge=self.knowledge,
            llm=self.llm() if needs_model else None, thread=f"mcp-{session[:12]}", actor=f"MCP client {client}".strip(),
        )  # fmt: skip

    def llm(self) -> LLM:
        with self._lock:
            self._llm = self._llm or load_llm(None, self.settings, on_progress=_say)
            return self._llm


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
