"""Starting the demo: on loopback, with a share link on Kaggle or when asked, and as a replay where no model loads."""

import atexit
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docgemma.agent import Agent
from docgemma.errors import ConfigError, DocGemmaError, ModelError, UsageError
from docgemma.images import MAX_BYTES
from docgemma.settings import Settings, read_settings

Auth = tuple[str, str] | list[tuple[str, str]] | Callable[[str, str], bool]
LOOPBACK = "127.0.0.1"
THREADS = 64  # people whose turns are followed at once; turns beyond wait


def launch(
    agent: Agent | None,
    share: bool | None = None,
    port: int | None = None,
    auth: Auth | None = None,
    *,
    settings: Settings | None = None,
    block: bool = False,
    quiet: bool = False,
) -> Any:
    """Start the demo; inside a notebook it opens in the cell's output.

    Args:
        agent: None replays the recorded scenarios, plainly marked as a replay.
        share: a public link through Gradio's tunnel; None makes one on Kaggle and nowhere else.
        port: None takes the first free one from 7860.
        auth: (name, password), several of them, or a function that checks them.
        block: return only when the server ends.

    Returns:
        The running `gradio.Blocks`; `.local_url`, `.share_url`, `.close()`.

    Raises:
        ConfigError: Gradio is not installed.
        UsageError: the port is taken; or a public link without a login would open somebody's record server.
    """
    _check_free(port)
    share = on_kaggle() if share is None else share
    if share and not auth:
        _check_public(agent)
    os.environ.setdefault("GRADIO_TEMP_DIR", _private_folder())
    blocks = build_app(agent, settings)
    options = page_options() | {"app_kwargs": {"middleware": _middleware(local_only=not (share or auth))}}
    try:
        blocks.queue(default_concurrency_limit=None).launch(
            server_name=LOOPBACK, server_port=port, share=share, auth=auth,
            max_threads=THREADS, prevent_thread_lock=not block, quiet=quiet, show_error=False, ssr_mode=False,
            enable_monitoring=False, max_file_size=MAX_BYTES, inbrowser=False, **options,
        )  # fmt: skip
    except OSError as error:
        raise _taken(port) from error
    return blocks


def open_in_notebook(agent: Agent) -> Any:
    """The app in a cell's output; where Gradio is not installed the same turns in ipywidgets. `.close()` ends both.

    Raises:
        ConfigError: neither is installed.
    """
    try:
        return launch(agent, quiet=True)
    except ConfigError as error:
        from IPython.display import display

        from docgemma.demo.widgets import WidgetDemo

        _say(f"{error} These are notebook widgets instead.")
        demo = WidgetDemo(agent)
        display(demo.box)
        return demo


def build_app(agent: Agent | None, settings: Settings | None = None) -> Any:
    """The app, not started, for a server of one's own: `gradio.mount_gradio_app(app, build_app(agent), "/demo",
    **page_options())`, with `docgemma.demo.policy.OwnServerOnly` around it.

    Raises:
        ConfigError: Gradio is not installed.
    """
    try:
        from docgemma.demo.app import build
    except ImportError as error:
        raise ConfigError("The demo is not installed.", hint="Run: pip install 'docgemma[demo]'") from error
    from docgemma.demo.ids import Ids
    from docgemma.demo.scenarios import load_scenarios, load_trace

    scenarios = load_scenarios()
    settings = agent.settings if agent else settings or read_settings()
    return build(agent, Ids(settings.home), scenarios, "" if agent else load_trace(scenarios[0].id)["recorded"])


def page_options() -> dict[str, Any]:
    """What a page needs besides the app: looks without a font or script from the network, and no history of runs in
    the browser, which would keep patient data there."""
    from docgemma.demo.looks import theme

    return {
        "theme": theme(), "css_paths": Path(__file__).with_name("style.css"), "footer_links": [], "run_history": False,
    }  # fmt: skip


def run_demo(share: bool | None = None, port: int | None = None, auth: Auth | None = None) -> None:
    """`docgemma demo`: load the model, or replay where none can be loaded, and serve until Ctrl-C."""
    with _agent() as agent:
        launch(agent, share, port, auth, block=True)


def on_kaggle() -> bool:
    return "KAGGLE_KERNEL_RUN_TYPE" in os.environ


class _agent:
    """The agent, or None with a line on why there is none."""

    def __enter__(self) -> Agent | None:
        try:
            self.agent: Agent | None = Agent(on_progress=_say)
        except (ConfigError, ModelError) as error:
            _say(f"{DocGemmaError.line(error)} The demo replays recorded scenarios instead.")
            self.agent = None
        return self.agent

    def __exit__(self, *exc: object) -> None:
        if self.agent:
            self.agent.close()


def _check_free(port: int | None) -> None:
    """Before anything is loaded: Gradio would say it in many lines."""
    if port is None:
        return
    try:
        with socket.create_server((LOOPBACK, port)):
            return
    except (OSError, OverflowError) as error:
        raise _taken(port) from error


def _check_public(agent: Agent | None) -> None:
    """A share link has no login of its own: whoever has it reads the records and approves entries."""
    if agent and (agent.settings.ehr or "").startswith("http"):
        raise UsageError(
            "A public link without a login would open this record server to everybody who has the link.",
            hint="Leave out --share, or use `docgemma serve` with DOCGEMMA_API_TOKENS.",
        )
    _say("Whoever has the public link can read these records and approve entries: share it with care.")


def _taken(port: int | None) -> UsageError:
    where = f"port {port}" if port else "any port from 7860 to 7959"
    return UsageError(f"The demo cannot listen on {where}.", hint="Choose another with --port.")


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _middleware(local_only: bool) -> list[Any]:
    from starlette.middleware import Middleware

    from docgemma.demo.policy import OwnServerOnly

    return [Middleware(OwnServerOnly, local_only=local_only)]


def _private_folder() -> str:
    """Where uploads lie until they are read: this user's alone, and gone when the program ends."""
    folder = tempfile.TemporaryDirectory(prefix="docgemma-uploads-")
    atexit.register(folder.cleanup)
    return folder.name
