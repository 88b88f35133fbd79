"""Everything a tool returns is data written by others. This removes what could pass for part of a prompt.

Pure: no I/O, no model. It does not judge meaning: "ignore your instructions" stays readable, as text in one line,
and is harmless because code, not text, decides what runs next.
"""

import re
from functools import cache
from typing import Any, TypeVar

from docgemma.text.characters import visible
from docgemma.text.quoted import closing

T = TypeVar("T")

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


_OWN: dict[str, str] = {}  # internal name -> label of every tool that was declared


def protect(name: str, label: str) -> None:
    """Remember a tool, so that no text from outside can imitate its heading or speak of it by its internal name."""
    _OWN[name] = label
    own_words.cache_clear()


@cache
def own_words() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What imitates the headings under which results stand in a prompt, and the tools' internal names."""
    labels, names = "|".join(map(re.escape, _OWN.values())), "|".join(map(re.escape, _OWN))
    return re.compile(rf"\[\s*({labels})\s*\]", re.IGNORECASE), re.compile(rf"\b(?:{names})\b", re.IGNORECASE)


def clean_text(text: str, limit: int = MAX_CHARS) -> str:
    """One line of visible text without control tokens or internal names, at most `limit` characters."""
    text = visible(text[: limit * 4])  # bounds the work below
    before = None
    while text != before:  # removing one token must not assemble another
        before, text = text, CONTROL_TOKENS.sub("", text)
    headings, names = own_words()
    text = headings.sub(r"(\1)", text)
    text = names.sub(lambda found: found[0].replace("_", " "), text)
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{(head := text[: limit - 3].rstrip())} …{closing(head)}"


def clean(value: T, limit: int = MAX_CHARS) -> T:
    """`clean_text` on every string inside a JSON value; lists keep their first 200 items."""
    cleaned: Any = value
    if isinstance(value, str):
        cleaned = clean_text(value, limit)
    elif isinstance(value, dict):
        cleaned = {key: clean(item, limit) for key, item in value.items()}
    elif isinstance(value, list | tuple):
        cleaned = [clean(item, limit) for item in value[:MAX_ITEMS]]
    return cleaned  # type: ignore[no-any-return]
