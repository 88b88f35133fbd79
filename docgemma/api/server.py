"""`docgemma serve`: the API on uvicorn, on this machine alone unless tokens are set, ended without losing a turn."""

import asyncio
import logging
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from docgemma.cli.shared import progress
from docgemma.errors import ConfigError
from docgemma.listening import is_loopback, listen
from docgemma.settings import read_settings

GRACE_S = 10  # what is being answered may end within it; the rest is stopped and can be taken up
REQUEST_S = 20.0  # a connection that has sent no whole request by then is closed
FILES = 4096  # connections and files that may be open at once, where the system allows it


def run_api(host: str = "127.0.0.1", port: int = 8000, *, demo: bool = True, model: str | None = None) -> None:
    """Serve until Ctrl-C or SIGTERM; the address is printed on stderr. Any host but this machine needs tokens.

    Raises:
        UsageError: the address cannot be used. ConfigError: tokens or packages are missing. ModelError, StoreError.
    """
    if find_spec("fastapi") is None:
        raise ConfigError("The REST API is not installed.", hint="Run: pip install 'docgemma[serve]'")
    from docgemma.api.access import read_tokens

    settings = read_settings()
    tokens = read_tokens(settings.api_tokens)
    if not tokens and not is_loopback(host):
        raise ConfigError(
            f"Without tokens the API only listens on this machine, not on {host}.",
            hint="Set DOCGEMMA_API_TOKENS to NAME:ROLE:SECRET (role read or write), or leave out --host.",
        )
    with listen(host, port) as listener, ended_by_sigterm():
        from docgemma.agent import Agent  # only now: what is wrong with the options has been said at once
        from docgemma.api.app import build_app

        log_to_stderr()
        with Agent(settings, model=model, on_progress=progress) as agent:
            mounted = demo and find_spec("gradio") is not None
            app = build_app(agent, tokens, demo=mounted)
            address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
            progress(f"DocGemma ({agent.llm.name}) answers at {address}/agent/query; {address}/openapi.json says how.")
            if demo:
                missing = "The demo is not installed: pip install 'docgemma[demo]'"
                progress(f"The demo is at {address}/demo/" if mounted else missing)
            if not tokens:
                progress(
                    "No token is set (DOCGEMMA_API_TOKENS): only this machine can connect, and may read and write."
                )
            elif not is_loopback(host):
                progress("Beyond this machine the connection is not encrypted: put a TLS proxy in front of it.")
            run_app(app, listener)


def run_app(app: Any, listener: socket.socket) -> None:
    """Serve until a signal. Whatever runs then has `GRACE_S` to end."""
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Protocol(H11Protocol):
        """HTTP/1.1 in which nobody holds a connection without a request."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.loop.call_later(REQUEST_S, lambda: None if self.cycle else transport.close())

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES if most < 0 else min(FILES, most), most))  # below 0: no limit
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, server_header=False, ws="none", http=Protocol,
        timeout_graceful_shutdown=GRACE_S, lifespan="on",
    )  # fmt: skip
    server = uvicorn.Server(config)
    server.run(sockets=[listener])
    if not server.started:
        raise ConfigError("The server did not start.", hint="Try --no-demo, and `docgemma doctor`.")


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the process as Ctrl-C does, everything closed; uvicorn hands the signal on once it has ended."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


def log_to_stderr() -> None:
    """One line a request, and nothing that names anybody (see guard.py)."""
    logging.basicConfig(format="%(asctime)s %(message)s")
    logging.getLogger("docgemma.api").setLevel(logging.INFO)
