"""The Gradio demo: `launch(agent)`, `run_demo()` for the command line, and the guided scenarios. Needs the demo extra."""

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read when Gradio is imported: nothing is reported anywhere

from docgemma.demo.start import launch, run_demo  # noqa: E402

__all__ = ["launch", "run_demo"]
