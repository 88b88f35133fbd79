"""The safety valves of a turn (v3 spec, section 11)."""

MAX_STEPS = 8  # distinct tool calls; a retry is not a step. A plan of several asks needs more than the four of the spec
MAX_DRUGS = 6  # in one interaction check
MAX_RETRIES = 2  # of one tool
MAX_TOTAL_RETRIES = 4  # of all tools in one turn
