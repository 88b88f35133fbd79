"""What a service sends, as pydantic models: unknown keys are ignored, null means absent, numbers may stand for text."""

from typing import Any

from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, model_validator


class Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        return _without_nulls(data)


def at(*paths: str, default: Any = ...) -> Any:
    """A field that stands deeper in the document, `at("resultList.result")`; of several paths the first."""
    return Field(default, validation_alias=AliasChoices(*(AliasPath(*path.split(".")) for path in paths)))


def _without_nulls(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_nulls(value) for key, value in data.items() if value is not None}
    return [_without_nulls(item) for item in data] if isinstance(data, list) else data
