"""The ten tools. `toolbox()` gives them all; `base.py` says what a tool is, `registry.py` lists them."""

from docgemma.tools.base import Tool, Toolbox, ToolContext, ToolOutput, validate
from docgemma.tools.registry import toolbox

__all__ = ["Tool", "ToolContext", "ToolOutput", "Toolbox", "toolbox", "validate"]
