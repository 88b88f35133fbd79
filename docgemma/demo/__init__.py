"""The Gradio demo: `launch(agent)`, `run_demo()` for the command line, guided scenarios. Needs the demo extra."""

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read when Gradio is imported: no telemetry

from docgemma.demo.start import launch, run_demo

__all__ = ["launch", "run_demo"]
