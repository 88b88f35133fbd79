"""Requests to one FHIR R4 server: a deadline for all of a call, few retries, paging, and typed failures.

Names, ids and tokens are in our addresses and headers: none of them reaches a message or a log.
"""

import json
from typing import Any, Literal

import httpx
from pydantic import BaseModel, ValidationError

from docgemma.ehr.base import Resource
from docgemma.errors import ErrorType, StoreError, ToolError
from docgemma.http import Deadline, Passing, retried, send

MAX_BYTES = 32_000_000  # of one answer
PAGE = ("_count", "100")
MAX_PAGES = 40
RETRIED = frozenset({429, 502, 503, 504})
FHIR_JSON = "application/fhir+json"
BAD = ("error", "fatal")  # severity of an issue; warnings and information are not failures
HEADERS = {
    "Accept": FHIR_JSON,
    "Cache-Control": "no-cache",  # HAPI answers a repeated search from its cache: a new write would be missing
    "Prefer": "handling=strict",  # an unknown search parameter is an error, not a search without it
}
# type -> HTTP statuses, issue codes (https://hl7.org/fhir/R4/valueset-issue-type.html), what is said, what to do
FAILURES: dict[ErrorType, tuple[set[int], set[str], str, str]] = {
    ErrorType.RATE_LIMIT: ({429}, {"throttled"}, "answers no more requests for now", "Wait a minute and try again."),
    ErrorType.TIMEOUT: (
        {408, 504}, {"timeout"}, "did not answer in time", "Try again, or raise DOCGEMMA_TOOL_TIMEOUT.",
    ),
    ErrorType.NOT_PERMITTED: (  # 405, 501: the server does not offer it
        {401, 403, 405, 407, 501}, {"security", "login", "expired", "forbidden", "suppressed"}, "refused access",
        "Check DOCGEMMA_EHR_TOKEN, or the client id, secret and their scopes.",
    ),
    ErrorType.NOT_FOUND: ({404, 410}, {"not-found", "deleted"}, "does not have this", ""),
    ErrorType.SERVICE_UNAVAILABLE: (
        {502, 503}, {"transient", "lock-error", "no-store"}, "cannot be reached", "Check the network and DOCGEMMA_EHR.",
    ),
    ErrorType.INVALID_ARGS: ({400, 409, 412, 422}, set(), "refused this as invalid", ""),
    ErrorType.SERVER_ERROR: (
        set(range(500, 600)), set(), "failed", "Try again; if it persists, ask its administrator.",
    ),
    ErrorType.INVALID_RESPONSE: (
        set(), set(), "does not answer as a FHIR R4 server", "Check the address in DOCGEMMA_EHR.",
    ),
}  # fmt: skip


class RemoteError(ToolError, StoreError):
    """A FHIR server failed, in one of the known ways. Never "nothing found". Its text holds no patient data.

    Args:
        detail: what is known beyond the type, as a clause: "HTTP 500".
        status: of its answer; None where there was none.
    """

    def __init__(self, error_type: ErrorType, server: str, detail: str = "", *, status: int | None = None):
        *_, said, hint = FAILURES[error_type]
        super().__init__(error_type, f"The {server} {said}{f' ({detail})' if detail else ''}.", hint=hint)
        self.status = status


class Entry(BaseModel):
    resource: Resource


class Link(BaseModel):
    relation: str
    url: str = ""


class Bundle(BaseModel):
    """A page of a search; it has no `entry` where nothing was found."""

    resourceType: Literal["Bundle"]
    type: Literal["searchset"]
    entry: list[Entry] = []
    link: list[Link] = []


class Session:
    """The requests of one call, which share a connection and a deadline. Threads may share it.

    Every method raises RemoteError when the server fails. `client` has the server's base URL, and how it knows us.
    """

    def __init__(self, client: httpx.Client, name: str, timeout_s: float):
        self._client, self._name, self._deadline = client, name, Deadline.after(timeout_s)

    def read(self, kind: str, resource_id: str) -> Resource | None:
        """One resource; None if the server says, as a FHIR server does, that it is not there."""
        try:
            body = self.get(f"{kind}/{resource_id}")
        except RemoteError as error:
            if error.error_type is ErrorType.NOT_FOUND and error.status in (404, 410):
                return None
            raise
        if not isinstance(body, dict) or body.get("resourceType") != kind or body.get("id") != resource_id:
            raise self.failed("another resource than asked for")
        return body

    def search(self, kind: str, params: list[tuple[str, str]], limit: int | None = None) -> list[Resource]:
        """All resources of a search, page after page, or the first `limit`. A part is never given as the whole: pages
        that do not end are an error."""
        page, home = f"{kind}?{httpx.QueryParams(tuple(params))}", self._client.base_url
        found: list[Resource] = []
        for _ in range(MAX_PAGES):
            try:
                bundle = Bundle.model_validate(self.get(page))
            except ValidationError:
                raise self.failed("not a search result") from None  # no chain: it quotes the body
            if wrong := next((entry.resource for entry in bundle.entry if failed_issues(entry.resource)), None):
                raise error_of(self._name, 200, wrong)
            found += [entry.resource for entry in bundle.entry if entry.resource.get("resourceType") == kind]
            following = next((link.url for link in bundle.link if link.relation == "next"), "")
            if not following or (limit is not None and len(found) >= limit):
                return found[:limit]
            url = home.join(following)
            if (url.scheme, url.host, url.port) != (home.scheme, home.host, home.port):
                raise self.failed("its next page is on another server")  # our token goes nowhere else
            page = str(url)
        raise self.failed(f"more than {MAX_PAGES} pages")

    def get(self, path: str) -> Any:
        """The JSON body of a success, or None where it has none; tried again after a moment's failure.

        Args:
            path: below the base URL, or a whole address on the same server.
        """
        return retried(lambda: self._send("GET", path), self._deadline)

    def post(self, kind: str, resource: Resource, headers: dict[str, str] | None = None) -> Any:
        """The JSON body of a success, or None. Tried once: a server may have stored what it did not answer."""
        headers = {"Content-Type": FHIR_JSON, **(headers or {})}
        return retried(lambda: self._send("POST", kind, json=resource, headers=headers), self._deadline, attempts=1)

    def failed(self, detail: str, status: int | None = 200) -> RemoteError:
        return RemoteError(ErrorType.INVALID_RESPONSE, self._name, detail, status=status)

    def _send(self, method: str, path: str, **more: Any) -> Any:
        response, body = send(self._client, method, path, self._deadline, MAX_BYTES, self._lost, **more)
        status, answer = response.status_code, _json(body)
        if status in (404, 410) and not is_outcome(answer):
            # a wrong address says 404 too; only a FHIR server can say that a record is not there
            raise self.failed(f"HTTP {status}", status)
        if not response.is_success or failed_issues(answer):
            error = error_of(self._name, status, answer)
            raise Passing(error, response) if error.retryable and status in RETRIED else error
        return answer

    def _lost(self, error_type: ErrorType, what: str) -> RemoteError:
        """The error of a request without an answer that can be read."""
        return RemoteError(error_type, self._name, what if error_type is ErrorType.INVALID_RESPONSE else "")


def is_outcome(body: Any) -> bool:
    return isinstance(body, dict) and body.get("resourceType") == "OperationOutcome"


def failed_issues(outcome: Any) -> list[str]:
    """The codes of an OperationOutcome's errors."""
    issues = outcome.get("issue") or [] if is_outcome(outcome) else []
    return [str(item.get("code", "")) for item in issues if isinstance(item, dict) and item.get("severity") in BAD]


def error_of(server: str, status: int, body: Any) -> RemoteError:
    """The typed error of an answer that is not a success. An issue code says more than the status."""
    codes = failed_issues(body)
    kinds = [kind for kind, (_, known, *_) in FAILURES.items() if not known.isdisjoint(codes)]
    kinds += [kind for kind, (known, *_) in FAILURES.items() if status in known]
    detail = ", ".join([f"HTTP {status}", *(code for code in codes if code.isascii())])[:100]
    return RemoteError(next(iter(kinds), ErrorType.INVALID_RESPONSE), server, detail, status=status)


def _json(content: bytes) -> Any:
    """The JSON of an answer, or None where there is none: what that means depends on who asked."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
