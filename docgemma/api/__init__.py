"""The REST API: `run_api()` for the command line, `app.build_app(agent, tokens)` for a server of one's own."""

from docgemma.api.server import run_api

__all__ = ["run_api"]
