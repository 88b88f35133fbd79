"""Starting the demo: on loopback, with a share link on Kaggle or when asked, and as a replay where no model loads."""

import atexit
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.middleware import Middleware

from docgemma.agent import Agent
from docgemma.demo.ids import Ids
from docgemma.demo.policy import OwnServerOnly
from docgemma.errors import ConfigError, DocGemmaError, ModelError, UsageError
from docgemma.images import MAX_BYTES
from docgemma.listening import listen
from docgemma.settings import Settings, read_settings
from docgemma.turns import Turns

Auth = tuple[str, str] | list[tuple[str, str]] | Callable[[str, str], bool]
LOOPBACK = "127.0.0.1"
SLOTS = 64  # people whose turns run at once; turns beyond wait
ALIKE: dict[str, Any] = {  # however the demo is served; the rest is in `_page_options`
    "show_error": False, "ssr_mode": False, "enable_monitoring": False, "max_file_size": MAX_BYTES,
}  # fmt: skip


def launch(
    agent: Agent | None,
    share: bool | None = None,
    port: int | None = None,
    auth: Auth | None = None,
    *,
    settings: Settings | None = None,
    block: bool = False,
    quiet: bool = False,
    inline: bool | None = None,
) -> Any:
    """Start the demo; inside a notebook it opens in the cell's output.

    Args:
        agent: None replays the recorded scenarios, plainly marked as a replay.
        share: a public link through Gradio's tunnel; None makes one on Kaggle and nowhere else.
        port: None or 0 takes the first free one from 7860.
        auth: (name, password), several of them, or a function that checks them.
        block: return only when the server ends.
        inline: whether a notebook's cell shows it; None asks Gradio.

    Returns:
        The running `gradio.Blocks`; `.local_url`, `.share_url`, `.close()`.

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
    blocks = _build(agent, turns, settings)
    local_only = Middleware(OwnServerOnly, local_only=not (share or auth))
    try:
        blocks.launch(
            server_name=LOOPBACK, server_port=port or None, share=share, auth=auth, max_threads=SLOTS, quiet=quiet,
            prevent_thread_lock=not block, inbrowser=False, inline=inline, app_kwargs={"middleware": [local_only]},
            **ALIKE, **_page_options(),
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
    """The demo as a part of a FastAPI server. With `auth`, a page asks for a name and secret, saying `sign_in`.

    Raises:
        ConfigError: Gradio is not installed.
    """
    blocks = _build(agent, Turns(SLOTS))
    import gradio

    gradio.mount_gradio_app(app, blocks, path, auth=auth, auth_message=auth and sign_in, **ALIKE, **_page_options())
    app.add_middleware(OwnServerOnly)


def run_demo(share: bool | None = None, port: int | None = None, auth: Auth | None = None) -> None:
    """`docgemma demo`: load the model, or replay where none can be loaded, and serve until Ctrl-C."""
    with _loaded() as agent:
        launch(agent, share, port, auth, block=True)


def on_kaggle() -> bool:
    return "KAGGLE_KERNEL_RUN_TYPE" in os.environ


def _build(agent: Agent | None, turns: Turns, settings: Settings | None = None) -> Any:
    """The app, not started. Uploads lie in a folder of this user's alone until they are read."""
    uploads = tempfile.TemporaryDirectory(prefix="docgemma-uploads-")
    atexit.register(uploads.cleanup)
    os.environ.setdefault("GRADIO_TEMP_DIR", uploads.name)
    try:
        from docgemma.demo.app import build
    except ImportError as error:
        raise ConfigError("The demo is not installed.", hint="Run: pip install 'docgemma[demo]'") from error
    settings = agent.settings if agent else settings or read_settings()
    return build(agent, Ids(settings.home), turns).queue(default_concurrency_limit=None)


def _page_options() -> dict[str, Any]:
    """Looks without a font or script from the network, and no history of runs, which would keep patient data in the
    browser."""
    from docgemma.demo.looks import theme

    css = Path(__file__).with_name("style.css")
    return {"theme": theme(), "css_paths": css, "footer_links": [], "run_history": False}


@contextmanager
def _loaded() -> Iterator[Agent | None]:
    """The agent, or None with a line on why there is none."""
    try:
        agent = Agent(on_progress=_say)
    except (ConfigError, ModelError) as error:
        _say(f"{DocGemmaError.line(error)} The demo replays recorded scenarios instead.")
        yield None
        return
    with agent:
        yield agent


def _check_public(agent: Agent | None) -> None:
    """A share link has no login of its own: whoever has it reads the records and approves entries."""
    if agent and (agent.settings.ehr or "").startswith("http"):
        raise UsageError(
            "A public link without a login would open this record server to everybody who has the link.",
            hint="Leave out --share, or use `docgemma serve` with DOCGEMMA_API_TOKENS.",
        )
    _say("Whoever has the public link can read these records and approve entries: share it with care.")


def _say(line: str) -> None:
    print(line, file=sys.stderr)
