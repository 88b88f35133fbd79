"""What a FHIR server's statuses and OperationOutcomes mean, in the words of the rules. No I/O."""

from typing import Any

from docgemma.errors import ErrorType, StoreError, ToolError

STATUS = {
    400: ErrorType.INVALID_ARGS,
    401: ErrorType.NOT_PERMITTED,
    403: ErrorType.NOT_PERMITTED,
    404: ErrorType.NOT_FOUND,
    405: ErrorType.NOT_PERMITTED,  # the server does not offer it
    407: ErrorType.NOT_PERMITTED,
    408: ErrorType.TIMEOUT,
    409: ErrorType.INVALID_ARGS,
    410: ErrorType.NOT_FOUND,
    412: ErrorType.INVALID_ARGS,
    422: ErrorType.INVALID_ARGS,
    429: ErrorType.RATE_LIMIT,
    501: ErrorType.NOT_PERMITTED,
    502: ErrorType.SERVICE_UNAVAILABLE,
    503: ErrorType.SERVICE_UNAVAILABLE,
    504: ErrorType.TIMEOUT,
}
# issue codes that say more than the status they come with (https://hl7.org/fhir/R4/valueset-issue-type.html)
ISSUE = {
    "throttled": ErrorType.RATE_LIMIT,
    "timeout": ErrorType.TIMEOUT,
    "security": ErrorType.NOT_PERMITTED,
    "login": ErrorType.NOT_PERMITTED,
    "expired": ErrorType.NOT_PERMITTED,
    "forbidden": ErrorType.NOT_PERMITTED,
    "suppressed": ErrorType.NOT_PERMITTED,
    "not-found": ErrorType.NOT_FOUND,
    "deleted": ErrorType.NOT_FOUND,
    "transient": ErrorType.SERVICE_UNAVAILABLE,
    "lock-error": ErrorType.SERVICE_UNAVAILABLE,
    "no-store": ErrorType.SERVICE_UNAVAILABLE,
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
    issues = (outcome.get("issue") if is_outcome(outcome) else None) or []
    issues = [item for item in issues if isinstance(item, dict) and item.get("severity") in ("error", "fatal")]
    return [str(item.get("code", "")) for item in issues]


def error_of(server: str, status: int, body: Any) -> RemoteError:
    """The typed error of an answer that is not a success."""
    codes = failed_issues(body)
    by_issue = next((ISSUE[code] for code in codes if code in ISSUE), None)
    by_status = STATUS.get(status) or (ErrorType.SERVER_ERROR if status >= 500 else ErrorType.INVALID_RESPONSE)
    detail = f"HTTP {status}" + (f", {', '.join(code for code in codes if code.isascii())[:80]}" if codes else "")
    return RemoteError(by_issue or by_status, server, detail, status=status)
