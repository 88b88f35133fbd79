"""The demo: `launch(agent)`, `open_in_notebook(agent)`, `run_demo()` for the command line. Needs the demo extra."""

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read when Gradio is imported: no telemetry

from docgemma.demo.start import launch, open_in_notebook, run_demo

__all__ = ["launch", "open_in_notebook", "run_demo"]
