"""The ten tools. `toolbox()` gives them all; `base.py` says what a tool is."""
