"""One tree of errors, by the stage that failed. Each says what to do next (`hint`) and whether a retry can help."""

from enum import StrEnum
from pathlib import Path
from typing import Any


class ErrorType(StrEnum):
    """Every way a tool can fail. The rules know these and no others."""

    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    SERVER_ERROR = "server_error"
    SERVICE_UNAVAILABLE = "service_unavailable"
    INVALID_RESPONSE = "invalid_response"
    NOT_FOUND = "not_found"
    INVALID_ARGS = "invalid_args"
    MISSING_REQUIRED_ARGS = "missing_required_args"
    MULTIPLE_PATIENT_MATCHES = "multiple_patient_matches"
    AMBIGUOUS_DRUG_NAME = "ambiguous_drug_name"
    DRUG_NOT_IN_DATABASE = "drug_not_in_database"
    NOT_PERMITTED = "not_permitted"
    NO_VISION = "no_vision"


RETRYABLE = frozenset({
    ErrorType.TIMEOUT, ErrorType.RATE_LIMIT, ErrorType.SERVER_ERROR, ErrorType.SERVICE_UNAVAILABLE,
    ErrorType.INVALID_RESPONSE,
})  # fmt: skip


class DocGemmaError(Exception):
    """Base of everything this package raises on purpose. `str(error)` is one clear line."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", retryable: bool = False):
        super().__init__(message)
        self.hint = hint
        self.retryable = retryable

    def line(self) -> str:
        """The one line a user sees: what happened, then what to do next."""
        return f"{self} {self.hint}".strip()


class UsageError(DocGemmaError):
    """The caller asked for something that cannot be: exit status 2."""

    exit_code = 2


class UnknownThreadError(UsageError):
    """There is no such conversation."""


class UnknownPatientError(UsageError):
    """There is no patient with this id."""


class ThreadStateError(UsageError):
    """The conversation waits for a decision, or has nothing to decide."""


class ConfigError(DocGemmaError):
    """A setting is wrong or something that it needs is not installed."""


class StoreError(DocGemmaError):
    """A database of ours (record store, memory, snapshot) is missing, corrupt or read-only."""


class ModelError(DocGemmaError):
    """The language model could not be loaded or did not answer."""


class OutOfTokensError(ModelError):
    """A constrained answer did not end within its token budget, twice."""


class MalformedOutputError(ModelError):
    """A constrained answer does not parse into its schema."""


class NoVisionError(ModelError):
    """The loaded model cannot look at images."""


class StoppedError(DocGemmaError):
    """The user pressed stop. The thread stays usable."""


class ToolError(DocGemmaError):
    """A tool failed in one of the known ways.

    Args:
        error_type: which way.
        message: what happened, for logs and traces; never shown raw to a clinician or a model.
        details: what the rules need to go on: `missing_fields: list[str]`, `suggestions: list[str]`,
            `options: [{"id", "label"}]` (a clarification's choices), `entity: str` (what was looked for).
    """

    def __init__(self, error_type: ErrorType, message: str = "", *, hint: str = "", **details: Any):
        super().__init__(message or error_type.value, hint=hint, retryable=error_type in RETRYABLE)
        self.error_type = error_type
        self.details = details


def kind_and_place(error: BaseException) -> str:
    """The kind of an unexpected error and where it was raised, without its text, which may hold patient data."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    place = f" in {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else ""
    return type(error).__name__ + place
