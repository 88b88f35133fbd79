"""What a FHIR server's statuses and OperationOutcomes mean, as typed errors. No I/O."""

from typing import Any

from docgemma.errors import ErrorType, StoreError, ToolError

STATUS = {
    ErrorType.INVALID_ARGS: {400, 409, 412, 422},
    ErrorType.NOT_PERMITTED: {401, 403, 405, 407, 501},  # 405, 501: the server does not offer it
    ErrorType.NOT_FOUND: {404, 410},
    ErrorType.TIMEOUT: {408, 504},
    ErrorType.RATE_LIMIT: {429},
    ErrorType.SERVICE_UNAVAILABLE: {502, 503},
    ErrorType.SERVER_ERROR: set(range(500, 600)) - {501, 502, 503, 504},
}
# issue codes that say more than the status they come with (https://hl7.org/fhir/R4/valueset-issue-type.html)
ISSUE = {
    ErrorType.RATE_LIMIT: {"throttled"},
    ErrorType.TIMEOUT: {"timeout"},
    ErrorType.NOT_PERMITTED: {"security", "login", "expired", "forbidden", "suppressed"},
    ErrorType.NOT_FOUND: {"not-found", "deleted"},
    ErrorType.SERVICE_UNAVAILABLE: {"transient", "lock-error", "no-store"},
}
SAID = {
    ErrorType.TIMEOUT: ("did not answer in time", "Try again, or raise DOCGEMMA_TOOL_TIMEOUT."),
    ErrorType.RATE_LIMIT: ("answers no more requests for now", "Wait a minute and try again."),
    ErrorType.SERVER_ERROR: ("failed", "Try again; if it persists, ask its administrator."),
    ErrorType.SERVICE_UNAVAILABLE: ("cannot be reached", "Check the network and DOCGEMMA_EHR."),
    ErrorType.INVALID_RESPONSE: ("does not answer as a FHIR R4 server", "Check the address in DOCGEMMA_EHR."),
    ErrorType.NOT_FOUND: ("does not have this", ""),
    ErrorType.INVALID_ARGS: ("refused this as invalid", ""),
    ErrorType.NOT_PERMITTED: ("refused access", "Check DOCGEMMA_EHR_TOKEN, or the client id, secret and their scopes."),
}


class RemoteError(ToolError, StoreError):
    """A FHIR server failed, in one of the known ways. Never "nothing found". Its text holds no patient data.

    Args:
        server: its name for people.
        detail: what is known beyond the type, as a clause: "HTTP 500".
    """

    def __init__(self, error_type: ErrorType, server: str, detail: str = "", *, status: int | None = None):
        said, hint = SAID[error_type]
        super().__init__(error_type, f"The {server} {said}{f' ({detail})' if detail else ''}.", hint=hint)
        self.status = status
        self.retry_after_s: float | None = None


def is_outcome(body: Any) -> bool:
    return isinstance(body, dict) and body.get("resourceType") == "OperationOutcome"


def failed_issues(outcome: Any) -> list[str]:
    """The codes of an OperationOutcome's errors; warnings and information are not failures."""
    issues = outcome.get("issue") or [] if is_outcome(outcome) else []
    failed = [item for item in issues if isinstance(item, dict) and item.get("severity") in ("error", "fatal")]
    return [str(item.get("code", "")) for item in failed]


def error_of(server: str, status: int, body: Any) -> RemoteError:
    """The typed error of an answer that is not a success."""
    codes = failed_issues(body)
    kinds = [kind for kind, known in ISSUE.items() if not known.isdisjoint(codes)]
    kinds += [kind for kind, known in STATUS.items() if status in known]
    detail = ", ".join([f"HTTP {status}", *(code for code in codes if code.isascii())])[:100]
    return RemoteError(next(iter(kinds), ErrorType.INVALID_RESPONSE), server, detail, status=status)
