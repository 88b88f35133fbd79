"""How a schema is written down: as JSON, or as bare lines.

`json` is the schema's JSON, in field order. `lines` is one field a line, in field order, values only: a field
that is absent is "-", a list is joined by "; ". Lines spare a small model the JSON punctuation, which it would
decode token by token; only flat schemas (strings, closed choices, lists of strings, optionals of these) have them.
Both are derived from the same Pydantic model and parse back into it.
"""

import json
from typing import Any, Literal

from pydantic import BaseModel

Layout = Literal["json", "lines"]
ABSENT = "-"
SEPARATOR = "; "


def parse(text: str, schema: type[BaseModel], layout: Layout) -> BaseModel:
    """Read a model's answer.

    Raises:
        ValueError: not the layout, or (as pydantic.ValidationError) not the schema.
    """
    if layout == "json":
        return schema.model_validate_json(text.strip())
    return schema.model_validate(read_lines(text, schema))


def read_lines(text: str, schema: type[BaseModel]) -> dict[str, Any]:
    lines = text.strip("\n").split("\n")
    names = list(schema.model_fields)
    if len(lines) != len(names):
        raise ValueError(f"{len(lines)} lines for {len(names)} fields")
    properties = schema.model_json_schema().get("properties", {})
    values: dict[str, Any] = {}
    for name, line in zip(names, lines, strict=True):
        if line == ABSENT and not schema.model_fields[name].is_required():
            continue
        values[name] = line.split(SEPARATOR) if properties[name].get("type") == "array" else line
    return values


def write(value: BaseModel, layout: Layout) -> str:
    """The text that a perfect model would have generated for `value`."""
    data = value.model_dump()
    if layout == "json":
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    lines = []
    for item in data.values():
        lines.append(ABSENT if item is None else SEPARATOR.join(item) if isinstance(item, list) else str(item))
    return "\n".join(lines)
