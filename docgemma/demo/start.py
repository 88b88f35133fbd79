"""Starting the demo: on loopback, with a share link on Kaggle or when asked."""

import atexit
import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from docgemma.agent import Agent
from docgemma.cli.shared import progress
from docgemma.errors import ConfigError, DocGemmaError, ModelError, UsageError
from docgemma.images import MAX_BYTES
from docgemma.listening import from_this_machine, listen
from docgemma.turns import Turns

Auth = tuple[str, str] | list[tuple[str, str]] | Callable[[str, str], bool]
LOOPBACK = "127.0.0.1"
SLOTS = 64  # people whose turns run at once; turns beyond wait
CONTENT = (  # what a page may do: talk to its own server and to nobody else; the browser enforces it
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "media-src 'self' data: blob:; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; "
    "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:"  # Gradio's start-up script and its templates
)
POLICY = {"content-security-policy": CONTENT, "referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}
UNFRAMED = f"{CONTENT}; frame-ancestors 'self'"  # no page of another site lays itself over an Approve button
ELSEWHERE = "This demo answers pages of this machine only. Open it as http://127.0.0.1, or start it with --share.\n"


def launch(
    agent: Agent,
    share: bool | None = None,
    port: int | None = None,
    auth: Auth | None = None,
    *,
    block: bool = False,
    quiet: bool = False,
    inline: bool | None = None,
) -> Any:
    """Start the demo; inside a notebook it opens in the cell's output. Returns the running `gradio.Blocks`.

    Args:
        share: a public link through Gradio's tunnel; None makes one on Kaggle and nowhere else.
        port: None or 0 takes the first free one from 7860.
        auth: (name, password), several of them, or a function that checks them.

    Raises:
        ConfigError: Gradio is not installed.
        UsageError: the port is taken; or a public link without a login would open somebody's record server.
    """
    if port:
        listen(LOOPBACK, port).close()  # Gradio would say in many lines that it is taken
    share = on_kaggle() if share is None else share
    if share and not auth:
        _check_public(agent)
    turns = Turns(SLOTS)
    blocks = _build(agent, turns)
    # a cell shows the page in a frame, of a site whose name nobody here knows; the command line's page is nobody's part
    local_only = Middleware(OwnServerOnly, local_only=not (share or auth), framed=not block)
    try:
        blocks.launch(
            server_name=LOOPBACK, server_port=port or None, share=share, auth=auth, max_threads=SLOTS, quiet=quiet,
            prevent_thread_lock=not block, inbrowser=False, inline=inline, app_kwargs={"middleware": [local_only]},
            **_options(),
        )  # fmt: skip
    except OSError as error:
        hint = "Choose another with --port."
        raise UsageError("The demo cannot listen on any port from 7860 to 7959.", hint=hint) from error
    if block:
        turns.close()
    return blocks


def open_in_notebook(agent: Agent) -> Any:
    """The app in a cell's output; `.close()` ends it. Raises ConfigError where Gradio is not installed."""
    return launch(agent, quiet=True)


def mount(app: Any, agent: Agent, path: str, auth: Callable[[str, str], bool] | None, sign_in: str) -> None:
    """The demo as a part of a FastAPI server. With `auth`, a page asks for a name and secret, saying `sign_in`."""
    blocks = _build(agent, Turns(SLOTS))
    import gradio

    gradio.mount_gradio_app(app, blocks, path, auth=auth, auth_message=auth and sign_in, **_options())
    app.add_middleware(OwnServerOnly)


def run_demo(share: bool | None = None, port: int | None = None) -> None:
    """`docgemma demo`: load the model, or the edge model where that cannot be loaded, and serve until Ctrl-C."""
    try:
        agent = Agent(on_progress=progress)
    except (ConfigError, ModelError) as error:
        progress(f"{DocGemmaError.line(error)} The demo runs on the edge model instead.")
        agent = Agent(model="edge")
    with closing(agent):
        launch(agent, share, port, block=True)


def on_kaggle() -> bool:
    return "KAGGLE_KERNEL_RUN_TYPE" in os.environ


def _build(agent: Agent, turns: Turns) -> Any:
    """The app, not started. Uploads lie in a folder of this user's alone until they are read."""
    uploads = tempfile.TemporaryDirectory(prefix="docgemma-uploads-")
    atexit.register(uploads.cleanup)
    os.environ.setdefault("GRADIO_TEMP_DIR", uploads.name)
    try:
        from docgemma.demo.app import build
    except ImportError as error:
        raise ConfigError("The demo is not installed.", hint="Run: pip install 'docgemma[demo]'") from error
    return build(agent, turns).queue(default_concurrency_limit=None)


def _options() -> dict[str, Any]:
    """How it is served: no font or script from the network, and no history of runs, which would keep patient data in
    the browser."""
    from gradio.themes import Base

    fonts, mono = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"), ("ui-monospace", "monospace")
    theme = Base(primary_hue="teal", secondary_hue="teal", neutral_hue="slate", font=fonts, font_mono=mono)
    return {
        "show_error": False, "ssr_mode": False, "enable_monitoring": False, "max_file_size": MAX_BYTES,
        "theme": theme, "css_paths": Path(__file__).with_name("style.css"),
        "head_paths": Path(__file__).with_name("head.html"), "footer_links": [], "run_history": False,
    }  # fmt: skip


def _check_public(agent: Agent) -> None:
    """A share link has no login of its own: whoever has it reads the records and approves entries."""
    if (agent.settings.ehr or "").startswith("http"):
        raise UsageError(
            "A public link without a login would open this record server to everybody who has the link.",
            hint="Leave out --share, or use `docgemma serve` with DOCGEMMA_API_TOKENS.",
        )
    progress("Whoever has the public link can read these records and approve entries: share it with care.")


class OwnServerOnly:
    """ASGI middleware that adds the policy to every answer. `local_only`: nobody signs in and no link is shared, so a
    page of another site, opened in a browser here, reaches nothing. `framed`: another page may show it in a frame."""

    def __init__(self, app: ASGIApp, local_only: bool = False, framed: bool = False):
        self.app, self.local_only = app, local_only
        self.policy = POLICY if framed else {**POLICY, "content-security-policy": UNFRAMED}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.local_only and scope["type"] == "http" and not from_this_machine(scope["headers"]):
            await PlainTextResponse(ELSEWHERE, 403)(scope, receive, send)
            return

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self.policy)
            await send(message)

        await self.app(scope, receive, with_policy if scope["type"] == "http" else send)
