"""How a schema is written down: as JSON, or as bare lines.

`json` is the schema's JSON, in field order. `lines` is one field a line, in field order, values only: a field
that is absent is "-", a list is joined by "; ". Lines spare a small model the JSON punctuation, which it would
decode token by token; only flat schemas (strings, closed choices, lists of strings, optionals of these) have them.
Both are derived from the same Pydantic model and parse back into it. What would be ambiguous cannot be written:
a line break in a value, a ";" in a list's item, an optional value that is "-", a list that may be empty.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel

Layout = Literal["json", "lines"]
ABSENT = "-"
SEPARATOR = "; "


@dataclass(frozen=True)
class Line:
    """One line. `choices` closes the value; lengths count characters; a list has at least one item."""

    name: str
    nullable: bool = False
    is_list: bool = False
    choices: tuple[str, ...] | None = None
    min_length: int = 0
    max_length: int | None = None
    min_items: int = 1
    max_items: int | None = None


def parse(text: str, schema: type[BaseModel], layout: Layout) -> BaseModel:
    """Read a model's answer.

    Raises:
        ValueError: not the layout, or (as pydantic.ValidationError) not the schema.
    """
    if layout == "json":
        return schema.model_validate_json(text.strip())
    return schema.model_validate(read_lines(text, schema))


def read_lines(text: str, schema: type[BaseModel]) -> dict[str, Any]:
    lines, expected = text.split("\n"), fields(schema)
    if len(lines) == len(expected) + 1 and not lines[-1]:
        lines.pop()  # a text file's last line break
    if len(lines) != len(expected):
        raise ValueError(f"{len(lines)} lines for {len(expected)} fields")
    values: dict[str, Any] = {}
    for field, line in zip(expected, lines, strict=True):
        if line == ABSENT and field.nullable:
            values[field.name] = None
        else:
            values[field.name] = line.split(SEPARATOR) if field.is_list else line
    return values


def write(value: BaseModel, layout: Layout) -> str:
    """The text that a perfect model would have generated for `value`.

    Raises:
        ValueError: the value has no unambiguous form in lines.
    """
    data = value.model_dump(mode="json")
    if layout == "json":
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return "\n".join(_write_line(field, data[field.name]) for field in fields(type(value)))


def only_answer(schema: type[BaseModel], layout: Layout) -> str | None:
    """The text of a schema that leaves no choice; None where a model has something to decide."""
    try:
        lines = fields(schema)
    except TypeError:
        return None
    if not lines or any(line.nullable or line.is_list or len(line.choices or ()) != 1 for line in lines):
        return None
    return write(schema.model_validate({line.name: line.choices[0] for line in lines if line.choices}), layout)


def _write_line(field: Line, value: Any) -> str:
    if value is None:
        return ABSENT
    items = value if field.is_list else [value]
    forbidden = ";\n" if field.is_list else "\n"
    if any(mark in item for item in items for mark in forbidden) or not items:
        raise ValueError(f"{field.name} cannot be written on one line without ambiguity")
    line = SEPARATOR.join(items)
    if line == ABSENT and field.nullable:
        raise ValueError(f"{field.name} is {ABSENT!r}, which means that it is absent")
    return line


@lru_cache(maxsize=128)
def fields(schema: type[BaseModel]) -> tuple[Line, ...]:
    """The lines of a flat schema.

    Raises:
        TypeError: the schema is not flat.
    """
    whole = schema.model_json_schema(by_alias=False)
    return tuple(_field(name, node, whole.get("$defs", {})) for name, node in whole.get("properties", {}).items())


def _field(name: str, node: dict[str, Any], defs: dict[str, Any]) -> Line:
    node, nullable = _strip_null(_resolve(node, defs), defs)
    if node.get("type") != "array":
        return Line(name, nullable, **_scalar(name, node, "\n"))
    item, null_item = _strip_null(_resolve(node.get("items", {}), defs), defs)
    least = node.get("minItems", 0)
    if null_item or least < 1:
        raise TypeError(f"{name}: a list needs at least one item, and no empty ones, to be written on a line")
    return Line(name, nullable, True, min_items=least, max_items=node.get("maxItems"), **_scalar(name, item, ";\n"))


def _scalar(name: str, node: dict[str, Any], forbidden: str) -> dict[str, Any]:
    choices = node.get("enum", [node["const"]] if "const" in node else None)
    if choices is not None:
        if not all(isinstance(item, str) and item != ABSENT and not set(forbidden) & set(item) for item in choices):
            raise TypeError(f"{name}: one of its choices cannot be written on a line without ambiguity")
        return {"choices": tuple(choices)}
    if node.get("type") != "string" or {"pattern", "format"} & set(node):
        raise TypeError(f"{name}: {node.get('type') or 'this type'} cannot be written on a line; use the json layout")
    return {"min_length": node.get("minLength", 0), "max_length": node.get("maxLength")}


def _strip_null(node: dict[str, Any], defs: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    kinds = [_resolve(item, defs) for item in node.get("anyOf", [node])]
    rest = [item for item in kinds if item.get("type") != "null"]
    return (rest[0] if len(rest) == 1 else {}), len(rest) < len(kinds)


def _resolve(node: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    return defs[node["$ref"].rsplit("/", 1)[-1]] if "$ref" in node else node
