"""`docgemma mcp`: the ten tools for any MCP client, over stdio, or over streamable HTTP behind a bearer token.

Over stdio the client started this process and is as trusted as the person who runs it. Over HTTP it is somebody else:
a token on every request, loopback unless told otherwise, and the Host and Origin headers are checked.
"""

import asyncio
import ipaddress
import secrets
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from docgemma.ehr.base import RecordStore
from docgemma.errors import ConfigError, DocGemmaError
from docgemma.knowledge.base import Knowledge
from docgemma.listening import listen
from docgemma.settings import Settings
from docgemma.tools import toolbox
from docgemma.tools.base import ToolContext

PATH = "/mcp"
PORT = 8765
MAX_BODY = 17 * 1024 * 1024  # a request with an image
MIN_TOKEN = 16
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def run_mcp(http: bool = False, host: str = "127.0.0.1", port: int = PORT) -> None:
    """The command: serve until the client leaves (stdio) or Ctrl-C (HTTP).

    Raises:
        UsageError, ConfigError, StoreError: what cannot be, and what to do.
    """
    settings = Settings()
    with suppress(KeyboardInterrupt):
        serve_http(settings, host, port) if http else serve_stdio(settings)


def serve_stdio(settings: Settings) -> None:
    """Serve one client on stdin and stdout. stdout carries the protocol and nothing else."""
    with _Services(settings) as services:
        asyncio.run(_stdio(services))


def serve_http(settings: Settings, host: str = "127.0.0.1", port: int = PORT, token: str | None = None) -> None:
    """Serve `http://HOST:PORT/mcp` until Ctrl-C.

    Args:
        host: 127.0.0.1 keeps it on this machine.
        port: 0 takes a free one; the address is printed on stderr.
        token: what clients send as `Authorization: Bearer …`; None takes `settings.mcp_token`, else makes one for this
            run and prints it on stderr.

    Raises:
        UsageError: the address cannot be used. ConfigError: the token is too short.
    """
    import uvicorn

    token, made = _token(token or settings.mcp_token)
    with _Services(settings) as services, listen(host, port) as listener:
        address = f"http://{_shown(host)}:{listener.getsockname()[1]}{PATH}"
        app = _http_app(services, host, token)
        _say(f"DocGemma's tools are at {address}")
        if made:
            _say(f"Token of this run: {token}")
            _say("Clients send it as: Authorization: Bearer TOKEN. DOCGEMMA_MCP_TOKEN sets a lasting one.")
        if _shown(host) not in LOOPBACK:
            _say("Beyond this machine the connection is not encrypted: put a TLS proxy in front of it.")
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=3)
        uvicorn.Server(config).run(sockets=[listener])


class _Services:
    """What the tools of this process use. Records and knowledge are opened now, so that a wrong setting ends the
    start with its line; the model only when there is an image to look at."""

    def __init__(self, settings: Settings):
        from docgemma.ehr.open import open_store
        from docgemma.knowledge import open_knowledge

        self.settings = settings
        self.store: RecordStore = open_store(settings)
        self.knowledge: Knowledge = open_knowledge(settings)
        self._llm: Any = None
        self._drugs: Any = None
        self._lock = threading.Lock()

    def __enter__(self) -> "_Services":
        return self

    def __exit__(self, *exc: object) -> None:
        if self._llm is not None:
            self._llm.close()
        self.knowledge.close()
        self.store.close()

    def server(self, *, image_paths: bool) -> Any:
        from docgemma.tools.mcp_tools import build_server

        return build_server(toolbox(), self.context, findings=self.findings, image_paths=image_paths)

    def context(self, caller: Any, needs_model: bool) -> ToolContext:
        return ToolContext(
            settings=self.settings, store=self.store, knowledge=self.knowledge,
            llm=self.llm() if needs_model else None,
            thread=f"mcp-{caller.session[:12]}", actor=f"MCP client {caller.client}".strip(),
        )  # fmt: skip

    def findings(self, name: str, args: dict[str, Any], context: ToolContext) -> list[str] | None:
        """The safety check that the graph makes before a write, here before the same write; None for a note."""
        if name == "save_clinical_note":
            return None  # nothing is checked, so nothing must be said to be fine
        # the one arrow upwards: the gate belongs to the graph, and a second one could differ from it
        from docgemma.knowledge.drug_names import load_drug_names
        from docgemma.nodes.write_gate import findings_for

        with self._lock:
            self._drugs = self._drugs or load_drug_names(self.settings.home)
        return findings_for(name, args, _Gate(self.store, self.knowledge, self._drugs, self.settings))

    def llm(self) -> Any:
        from docgemma.llm import load_llm

        with self._lock:
            self._llm = self._llm or load_llm(None, self.settings, on_progress=_say)
            return self._llm


@dataclass(frozen=True)
class _Gate:
    """What the safety check reads of a graph's context."""

    store: RecordStore
    knowledge: Knowledge
    drugs: Any
    settings: Settings


async def _stdio(services: _Services) -> None:
    from mcp.server.stdio import stdio_server

    server = services.server(image_paths=True)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _http_app(services: _Services, host: str, token: str) -> Any:
    from mcp.server.auth.provider import AccessToken
    from mcp.server.auth.settings import AuthSettings
    from mcp.server.transport_security import TransportSecuritySettings

    class OneToken:
        async def verify_token(self, given: str) -> AccessToken | None:
            # bytes: a str outside ASCII makes compare_digest raise
            fits = secrets.compare_digest(given.encode(), token.encode())
            return AccessToken(token=given, client_id="mcp-client", scopes=[]) if fits else None

    names = _names(host)
    return services.server(image_paths=False).streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_BODY,
        host=host,
        # no authorization server: the token is handed over by whoever started this one
        auth=AuthSettings.model_validate({"issuer_url": f"http://{_shown(host)}", "resource_server_url": None}),
        token_verifier=OneToken(),
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=[form for name in names for form in (name, f"{name}:*")],
            allowed_origins=[form for name in names for form in (f"http://{name}", f"http://{name}:*")],
        ),
    )


def _names(host: str) -> list[str]:
    """Under which names a client may call this server: what the Host header may say."""
    if host not in ("0.0.0.0", "::"):
        return sorted({*LOOPBACK, _shown(host)})
    own = socket.gethostname()
    try:
        addresses = {item[4][0] for item in socket.getaddrinfo(own, None)}
    except OSError:
        addresses = set()
    return sorted({*LOOPBACK, own, socket.getfqdn(), *map(_shown, addresses)})


def _token(given: str | None) -> tuple[str, bool]:
    if given is None:
        return secrets.token_urlsafe(32), True
    if len(given) < MIN_TOKEN:
        raise ConfigError(
            f"The MCP token is shorter than {MIN_TOKEN} characters.",
            hint="Set DOCGEMMA_MCP_TOKEN to a longer one, or unset it and one is made.",
        )
    return given, False


def _shown(host: str) -> str:
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """`python -m docgemma.tools.mcp_server [--http] [--host H] [--port N]`, as `docgemma mcp`."""
    import argparse

    parser = argparse.ArgumentParser(prog="docgemma mcp", description="The ten tools as an MCP server.")
    parser.add_argument("--http", action="store_true", help="streamable HTTP instead of stdio")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=PORT)
    options = parser.parse_args(arguments)
    try:
        run_mcp(options.http, options.host, options.port)
    except DocGemmaError as error:
        _say(f"docgemma: {error.line()}")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
