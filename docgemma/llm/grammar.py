"""What a model is allowed to write for a schema: a JSON schema to the letter, or a Lark grammar of bare lines.

Both in llguidance's dialect, which llama.cpp and Outlines understand, so a schema means the same on every back end.
"""

import json
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from docgemma.llm.layout import ABSENT, SEPARATOR, Layout, Line, fields

COMPACT = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}


@lru_cache(maxsize=128)
def grammar(schema: type[BaseModel], layout: Layout) -> str:
    """The Lark text that constrains a model to `schema`, cached by schema.

    Raises:
        TypeError: the schema is not flat and cannot be written in lines.
    """
    if layout == "lines":
        return lines_grammar(schema)
    return "start: %json " + json.dumps(json_schema(schema) | {"x-guidance": COMPACT}, ensure_ascii=False)


def json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The schema's JSON schema with extra keys forbidden at every level and numbers of bounded length."""
    return _tighten(schema.model_json_schema())


def _tighten(node: Any) -> Any:
    if isinstance(node, list):
        return [_tighten(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _tighten(value) for key, value in node.items()}
    if node.get("type") == "object" and "properties" in node:
        node["additionalProperties"] = False
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
    low, high = max(field.min_items, 1), field.max_items
    repeat = f"{{{low - 1},{high - 1}}}" if high is not None else f"{{{low - 1},}}"
    return f"({item}) ({more}({item})){repeat}"


def _value(field: Line, excluded: str) -> str:
    if field.choices is not None:
        return " | ".join(_quote(choice) for choice in field.choices)
    high = "" if field.max_length is None else field.max_length
    return f"/[^{excluded}]{{{field.min_length},{high}}}/"


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
