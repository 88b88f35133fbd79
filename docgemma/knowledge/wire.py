"""What a service sends, as pydantic models: unknown keys are ignored, null means absent, numbers may stand for text."""

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        return {key: value for key, value in data.items() if value is not None} if isinstance(data, dict) else data
