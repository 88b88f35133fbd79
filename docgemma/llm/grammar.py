"""What a model is allowed to write for a schema: a JSON schema to the letter, or a Lark grammar of bare lines.

Both in llguidance's dialect, which llama.cpp and Outlines understand, so a schema means the same on every back end.
"""

import json
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from docgemma.llm.layout import ABSENT, SEPARATOR, Layout, Line, fields

COMPACT = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
DECIMALS = 0.01


@lru_cache(maxsize=128)
def grammar(schema: type[BaseModel], layout: Layout) -> str:
    """The Lark text that constrains a model to `schema`, cached by schema.

    Raises:
        TypeError: the schema is not flat and cannot be written in lines.
    """
    if layout == "lines":
        return lines_grammar(schema)
    bounded = _tighten(schema.model_json_schema(), decimals=DECIMALS) | {"x-guidance": COMPACT}
    return "start: %json " + json.dumps(bounded)


def json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The schema's JSON schema, extra keys forbidden at every level."""
    return _tighten(schema.model_json_schema())


def _tighten(node: Any, *, decimals: float | None = None) -> Any:
    """Forbid extra keys; with `decimals`, also digits without end: a small model writes 0.9500000… until its budget
    is spent."""
    if isinstance(node, list):
        return [_tighten(item, decimals=decimals) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _tighten(value, decimals=decimals) for key, value in node.items()}
    if node.get("type") == "object" and "properties" in node:
        node["additionalProperties"] = False
    if node.get("type") == "number" and decimals:
        node.setdefault("multipleOf", decimals)
    return node


def lines_grammar(schema: type[BaseModel]) -> str:
    """One field a line, values only (`layout.py` describes it)."""
    rules = [f"F{index}: {_line(field)}" for index, field in enumerate(fields(schema))]
    start = ' "\\n" '.join(f"F{index}" for index in range(len(rules)))
    return "\n".join([f"start: {start}", *rules])


def _line(field: Line) -> str:
    value = _list(field) if field.is_list else _value(field, r"\n")
    return f"{value} | {_quote(ABSENT)}" if field.nullable else value


def _list(field: Line) -> str:
    item, more = _value(field, r";\n"), f"{_quote(SEPARATOR)} "
    low, high = field.min_items, field.max_items
    if high == 1:
        return f"({item})"
    repeat = f"{{{low - 1},{high - 1}}}" if high is not None else f"{{{low - 1},}}"
    return f"({item}) ({more}({item})){repeat}"


def _value(field: Line, excluded: str) -> str:
    if field.choices is not None:
        return " | ".join(_quote(choice) for choice in field.choices)
    high = "" if field.max_length is None else field.max_length
    return f"/[^{excluded}]{{{field.min_length},{high}}}/"


def _quote(text: str) -> str:
    """A Lark string: JSON's escapes, ASCII only, since a raw control character ends llguidance's lexer."""
    return json.dumps(text)
