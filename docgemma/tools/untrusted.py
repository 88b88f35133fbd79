"""Everything a tool returns is data written by others. This removes what could pass for part of a prompt.

Pure: no I/O, no model. It does not judge meaning: "ignore your instructions" stays readable, as text in one line,
and is harmless because code, not text, decides what runs next.
"""

import re
from typing import Any

from docgemma.characters import visible
from docgemma.schemas import TOOL_ARG_SCHEMAS

MAX_CHARS = 4000  # a field
MAX_ITEMS = 200  # a list

_BAR = "[|｜]"  # some templates use the fullwidth bar
CONTROL_TOKENS = re.compile(
    rf"<\s*{_BAR}[^<>\n]{{0,60}}{_BAR}\s*>"  # <|im_start|>, <|eot_id|>, <｜User｜>
    r"|<\s*/?\s*(?:start|end)_of_(?:turn|image)\s*>"  # Gemma
    r"|<\s*image_soft_token\s*>|<\s*unused\d+\s*>"
    r"|<\s*/?\s*(?:s|bos|eos|pad|unk|mask|think|tool_calls?|tool_response|function_call|tool_code|tool_outputs?)\s*>"
    r"|\[\s*/?\s*(?:INST|SYS|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|SYSTEM_PROMPT)\s*\]"
    r"|<<\s*/?\s*SYS\s*>>",
    re.IGNORECASE,
)
# a line that imitates the headings under which results stand in a prompt
HEADINGS = re.compile(
    r"\[\s*(Patient Search|Patient Record|Drug Safety Report|Drug Interaction Check|Medical Literature|Clinical Trials"
    r"|Prescription|Allergy Documentation|Clinical Note|Image Analysis)\s*\]",
    re.IGNORECASE,
)
TOOL_NAMES = re.compile(r"\b(?:" + "|".join(TOOL_ARG_SCHEMAS) + r")\b", re.IGNORECASE)


def clean_text(text: str, limit: int = MAX_CHARS) -> str:
    """One line of visible text without control tokens or internal names, at most `limit` characters."""
    text = text[: limit * 4]  # bounds the work below
    text = visible(text)
    before = None
    while text != before:  # removing one token must not assemble another
        before, text = text, CONTROL_TOKENS.sub("", text)
    text = HEADINGS.sub(r"(\1)", text)
    text = TOOL_NAMES.sub(lambda found: found[0].replace("_", " "), text)
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= limit else text[: limit - 2].rstrip() + " …"


def clean(value: Any, limit: int = MAX_CHARS) -> Any:
    """`clean_text` on every string inside a JSON value; lists keep their first 200 items."""
    if isinstance(value, str):
        return clean_text(value, limit)
    if isinstance(value, dict):
        return {key: clean(item, limit) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item, limit) for item in value[:MAX_ITEMS]]
    return value
