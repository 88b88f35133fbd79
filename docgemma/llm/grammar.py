"""What a model is allowed to write for a schema: its JSON to the letter, in field order.

In llguidance's dialect, which llama.cpp and Outlines understand, so a schema means the same on every back end.
"""

import json
from functools import lru_cache
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

COMPACT = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
DECIMALS = 0.01


@lru_cache(maxsize=128)
def grammar(schema: type[BaseModel]) -> str:
    """The Lark text that constrains a model to `schema`, cached by schema."""
    bounded = _tighten(schema.model_json_schema(), decimals=DECIMALS) | {"x-guidance": COMPACT}
    return "start: %json " + json.dumps(bounded)


def json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The schema's JSON schema, extra keys forbidden at every level."""
    closed: dict[str, Any] = _tighten(schema.model_json_schema())
    return closed


def only_answer(schema: type[BaseModel]) -> BaseModel | None:
    """The one value of a schema that leaves no choice; None where a model has something to decide."""
    kinds = {name: field.annotation for name, field in schema.model_fields.items()}
    if not kinds or any(get_origin(kind) is not Literal or len(get_args(kind)) != 1 for kind in kinds.values()):
        return None
    return schema.model_validate({name: get_args(kind)[0] for name, kind in kinds.items()})


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
