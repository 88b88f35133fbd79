"""The safety valves of a turn (v3 spec, section 11)."""

MAX_STEPS = 4  # distinct tool calls; a retry is not a step
MAX_RETRIES = 2  # of one tool
MAX_TOTAL_RETRIES = 4  # of all tools in one turn
