"""Requests to one FHIR R4 server: a deadline for all of a call, few retries, paging, and typed failures.

Names, ids and tokens are in our addresses and headers: none of them reaches a message or a log.
"""

import json
import time
from typing import Any

import anyio
import httpx
import stamina

from docgemma.ehr.base import Resource
from docgemma.ehr.outcome import RemoteError, error_of, failed_issues, is_outcome
from docgemma.errors import ErrorType

ATTEMPTS = 3
MAX_BYTES = 32_000_000  # of one answer
PAGE = ("_count", "100")
MAX_PAGES = 40
RETRIED = frozenset({429, 502, 503, 504, None})  # None: no answer at all, or half of one
FHIR_JSON = "application/fhir+json"
HEADERS = {
    "Accept": FHIR_JSON,
    "Cache-Control": "no-cache",  # HAPI answers a repeated search from its cache: a new write would be missing
    "Prefer": "handling=strict",  # an unknown search parameter is an error, not a search without it
}


class Session:
    """One call's requests, which share a deadline. Every method raises RemoteError when the server fails.

    Args:
        client: with the server's base URL, and how it knows us.
        name: the server's, for people.
    """

    def __init__(self, client: httpx.AsyncClient, name: str, timeout_s: float):
        self._client, self._name, self._ends = client, name, time.monotonic() + timeout_s
        self.base_url = client.base_url

    def extend(self, seconds: float) -> None:
        """At least this long for what must still be done."""
        self._ends = max(self._ends, time.monotonic() + seconds)

    async def read(self, kind: str, resource_id: str) -> Resource | None:
        """One resource; None if the server says, as a FHIR server does, that it is not there."""
        try:
            body = await self.send("GET", f"{kind}/{resource_id}")
        except RemoteError as error:
            if error.error_type is ErrorType.NOT_FOUND and error.status in (404, 410):
                return None
            raise
        if not isinstance(body, dict) or body.get("resourceType") != kind or body.get("id") != resource_id:
            raise self.failed(ErrorType.INVALID_RESPONSE, "another resource than asked for")
        return body

    async def search(self, kind: str, params: list[tuple[str, str]], limit: int | None = None) -> list[Resource]:
        """All resources of a search, page after page, or the first `limit`. A part is never given as the whole: pages
        that do not end are an error."""
        page = f"{kind}?{httpx.QueryParams(tuple(params))}"
        found: list[Resource] = []
        for _ in range(MAX_PAGES):
            body = await self.send("GET", page)
            found += [item for item in self._entries(body) if item.get("resourceType") == kind]
            page = self._next(body)
            if not page or (limit is not None and len(found) >= limit):
                return found[:limit]
        raise self.failed(ErrorType.INVALID_RESPONSE, f"more than {MAX_PAGES} pages")

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: Resource | None = None,
        headers: dict[str, str] | None = None,
        retry: bool = True,
    ) -> Any:
        """The JSON body of a success, or None where it has none.

        Args:
            path: below the base URL, or a whole address on the same server.
            retry: the server bears the request twice.
        """
        async for attempt in stamina.retry_context(
            on=self._may_retry,
            attempts=ATTEMPTS if retry else 1,
            timeout=None,
            wait_initial=0.2,
            wait_max=2.0,
            wait_jitter=0.2,
        ):
            with attempt:
                return await self._once(method, path, body, headers or {})
        raise AssertionError("unreachable")

    def failed(self, error_type: ErrorType, detail: str = "", status: int | None = None) -> RemoteError:
        return RemoteError(error_type, self._name, detail, status=status)

    def _may_retry(self, error: Exception) -> bool | float:
        if not isinstance(error, RemoteError) or not error.retryable or error.status not in RETRIED:
            return False
        left, wait_s = self._ends - time.monotonic(), error.retry_after_s
        if wait_s is None:
            return left > 0.5
        return wait_s if wait_s < left else False

    async def _once(self, method: str, path: str, body: Resource | None, headers: dict[str, str]) -> Any:
        if body is not None:
            headers = headers | {"Content-Type": FHIR_JSON}
        try:
            with anyio.fail_after(max(0.0, self._ends - time.monotonic())):
                async with self._client.stream(method, path, headers=headers, json=body) as response:
                    answer = _json(await self._bytes(response))
        except (TimeoutError, httpx.TimeoutException) as error:
            raise self.failed(ErrorType.TIMEOUT) from error
        except httpx.ConnectError as error:
            raise self.failed(ErrorType.SERVICE_UNAVAILABLE) from error
        except (httpx.TransportError, httpx.DecodingError, httpx.InvalidURL, httpx.StreamError) as error:
            raise self.failed(ErrorType.INVALID_RESPONSE, "its answer broke off") from error
        status = response.status_code
        if status in (404, 410) and not is_outcome(answer):
            # a wrong address says 404 too; only a FHIR server can say that a record is not there
            raise self.failed(ErrorType.INVALID_RESPONSE, f"HTTP {status}", status)
        if not response.is_success or failed_issues(answer):
            failure = error_of(self._name, status, answer)
            wait_s = response.headers.get("Retry-After", "").strip()
            failure.retry_after_s = float(wait_s) if wait_s.isdigit() else None
            raise failure
        return answer

    async def _bytes(self, response: httpx.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes(65536):
            body += chunk
            if len(body) > MAX_BYTES:
                raise self.failed(ErrorType.INVALID_RESPONSE, f"more than {MAX_BYTES // 1_000_000} MB", status=200)
        return bytes(body)

    def _entries(self, body: Any) -> list[Resource]:
        """The resources of a searchset; it has no `entry` where nothing was found."""
        if not isinstance(body, dict) or body.get("resourceType") != "Bundle" or body.get("type") != "searchset":
            raise self.failed(ErrorType.INVALID_RESPONSE, "not a search result", status=200)
        found: list[Resource] = []
        entries = body.get("entry") or []
        for entry in entries if isinstance(entries, list) else [None]:
            resource = entry.get("resource") if isinstance(entry, dict) else None
            if not isinstance(resource, dict):
                raise self.failed(ErrorType.INVALID_RESPONSE, "a search result that cannot be read", status=200)
            if failed_issues(resource):
                raise error_of(self._name, 200, resource)
            found.append(resource)
        return found

    def _next(self, body: Resource) -> str:
        """The address of the next page, or ""."""
        links = [item for item in body.get("link") or [] if isinstance(item, dict) and item.get("relation") == "next"]
        if not links or not links[0].get("url"):
            return ""
        base, url = self.base_url, self.base_url.join(str(links[0]["url"]))
        if (url.scheme, url.host, url.port) != (base.scheme, base.host, base.port):
            # our token goes nowhere else
            raise self.failed(ErrorType.INVALID_RESPONSE, "its next page is on another server", status=200)
        return str(url)


def _json(content: bytes) -> Any:
    """The JSON of an answer, or None where there is none: what that means depends on who asked."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
