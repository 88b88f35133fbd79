"""The Gradio demo as a part of this server, at /demo."""

import atexit
import os
import tempfile

from fastapi import FastAPI

from docgemma.agent import Agent
from docgemma.api.access import Tokens
from docgemma.images import MAX_BYTES

PATH = "/demo"
SIGN_IN = "The name of a token, and its secret. Its role must be write. Entries are signed with the name."


def mount_demo(app: FastAPI, agent: Agent, tokens: Tokens) -> None:
    """With tokens, the demo asks for the name and the secret of one that may write: whoever uses it can approve.

    Raises:
        ConfigError: Gradio is not installed.
    """
    from docgemma.demo.policy import OwnServerOnly
    from docgemma.demo.start import build_app, page_options

    uploads = tempfile.TemporaryDirectory(prefix="docgemma-uploads-")  # this user's alone
    atexit.register(uploads.cleanup)
    os.environ.setdefault("GRADIO_TEMP_DIR", uploads.name)
    blocks = build_app(agent).queue(default_concurrency_limit=None)
    import gradio

    gradio.mount_gradio_app(
        app, blocks, PATH, auth=tokens.may_sign_in if tokens else None, auth_message=SIGN_IN if tokens else None,
        show_error=False, ssr_mode=False, enable_monitoring=False, max_file_size=MAX_BYTES, **page_options(),
    )  # fmt: skip
    app.add_middleware(OwnServerOnly)
