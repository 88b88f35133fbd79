"""Requests to one FHIR R4 server: a deadline for all of a call, few retries, paging, and typed failures.

Names, ids and tokens are in our addresses and headers: none of them reaches a message or a log.
"""

import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import httpx
import stamina
from anyio.from_thread import start_blocking_portal

from docgemma.ehr.auth import ClientCredentials, Refused, Token
from docgemma.ehr.fhir import Resource
from docgemma.ehr.outcome import RemoteError, error_of, failed_issues, is_outcome
from docgemma.errors import ErrorType

T = TypeVar("T")

ATTEMPTS = 3
CONNECT_S = 4.0
MAX_BYTES = 32_000_000  # of one answer
# httpx and httpcore log whole addresses; stamina warns of every pause, which ends in an answer or in our own error
QUIET = {"httpx": logging.WARNING, "httpcore": logging.WARNING, "stamina": logging.ERROR}
PAGE = ("_count", "100")
MAX_PAGES = 40
RETRIED = frozenset({429, 502, 503, 504, None})  # None: no answer at all, or half of one
FHIR_JSON = "application/fhir+json"
HEADERS = {
    "Accept": FHIR_JSON,
    "Cache-Control": "no-cache",  # HAPI answers a repeated search from its cache: a new write would be missing
    "Prefer": "handling=strict",  # an unknown search parameter is an error, not a search without it
}


class Server:
    """Where the server is and who we are. Shared by threads; a `Session` is one call's worth of requests."""

    def __init__(self, base_url: str, auth: Token | ClientCredentials, timeout_s: float):
        self.base_url = base_url.rstrip("/")
        self.auth = auth
        self.timeout_s = timeout_s
        self.origin = httpx.URL(self.base_url)
        self.name = f"FHIR server {self.origin.host}"
        self._tls = httpx.create_ssl_context()  # once: it takes longer than a request
        for name, level in QUIET.items():
            logging.getLogger(name).setLevel(level)

    def run(self, work: Callable[["Session"], Awaitable[T]]) -> T:
        """Do `work` on an event loop of its own thread, where a deadline ends a call whatever the server does."""
        with start_blocking_portal() as portal:
            return portal.call(self._within, work)

    async def _within(self, work: Callable[["Session"], Awaitable[T]]) -> T:
        timeout = httpx.Timeout(self.timeout_s, connect=min(CONNECT_S, self.timeout_s))
        async with httpx.AsyncClient(verify=self._tls, timeout=timeout, headers=HEADERS) as client:
            return await work(Session(self, client))


class Session:
    """One call's requests, which share a deadline."""

    def __init__(self, server: Server, client: httpx.AsyncClient):
        self.server, self._client = server, client
        self._ends = time.monotonic() + server.timeout_s

    def extend(self, seconds: float) -> None:
        """At least this long for what must still be done."""
        self._ends = max(self._ends, time.monotonic() + seconds)

    async def read(self, kind: str, resource_id: str) -> Resource | None:
        """One resource; None if the server says, as a FHIR server does, that it is not there.

        Raises:
            RemoteError
        """
        try:
            _, body = await self.send("GET", f"{self.server.base_url}/{kind}/{resource_id}", retry=True)
        except RemoteError as error:
            if error.error_type is ErrorType.NOT_FOUND and error.status in (404, 410):
                return None
            raise
        if not isinstance(body, dict) or body.get("resourceType") != kind or body.get("id") != resource_id:
            raise self.failed(ErrorType.INVALID_RESPONSE, "another resource than asked for")
        return body

    async def search(self, kind: str, params: list[tuple[str, str]], limit: int | None = None) -> list[Resource]:
        """All resources of a search, page after page, or the first `limit`.

        Raises:
            RemoteError: also where the pages do not end: a part is never given as the whole.
        """
        url: httpx.URL | None = httpx.URL(f"{self.server.base_url}/{kind}", params=params)
        found: list[Resource] = []
        for _ in range(MAX_PAGES):
            _, body = await self.send("GET", str(url), retry=True)
            found += [item for item in self._entries(body) if item.get("resourceType") == kind]
            url = self._next(body)
            if url is None or (limit is not None and len(found) >= limit):
                return found[:limit]
        raise self.failed(ErrorType.INVALID_RESPONSE, f"more than {MAX_PAGES} pages")

    async def send(
        self, method: str, url: str, *, retry: bool, body: Resource | None = None, headers: dict[str, str] | None = None
    ) -> tuple[httpx.Headers, Any]:
        """One request with our credentials; headers and JSON body of the success.

        Raises:
            RemoteError
        """
        attempts = ATTEMPTS if retry else 1
        async for attempt in stamina.retry_context(
            on=self._may_retry, attempts=attempts, timeout=None, wait_initial=0.2, wait_max=2.0, wait_jitter=0.2
        ):
            with attempt:
                return await self._authorized(method, url, body, headers or {})
        raise AssertionError("unreachable")

    def failed(self, error_type: ErrorType, detail: str = "", status: int | None = None) -> RemoteError:
        return RemoteError(error_type, self.server.name, detail, status=status)

    def _may_retry(self, error: Exception) -> bool | float:
        if not isinstance(error, RemoteError) or not error.retryable or error.status not in RETRIED:
            return False
        left, wait_s = self._ends - time.monotonic(), error.retry_after_s
        if wait_s is None:
            return left > 0.5
        return wait_s if wait_s < left else False

    async def _authorized(self, method: str, url: str, body: Any, headers: dict[str, str]) -> tuple[httpx.Headers, Any]:
        for first in (True, False):
            try:
                credentials = await self.server.auth.header(self._plain)
            except Refused as error:
                raise self.failed(ErrorType.NOT_PERMITTED, str(error)) from error
            status, answer_headers, answer = await self._once(method, url, headers | credentials, json_body=body)
            if status == 401 and first and self.server.auth.forget():
                continue  # the token ended early: once more with a new one
            break
        if not 200 <= status < 300:
            raise self._error(status, answer_headers, answer)
        if failed_issues(answer):
            raise error_of(self.server.name, status, answer)
        return answer_headers, answer

    async def _plain(self, method: str, url: str, **options: Any) -> tuple[int, Any]:
        status, _, answer = await self._once(method, url, {"Accept": "application/json"}, **options)
        return status, answer

    def _error(self, status: int, headers: httpx.Headers, answer: Any) -> RemoteError:
        if status in (404, 410) and not is_outcome(answer):
            # a wrong address says 404 too; only a FHIR server can say that a record is not there
            return self.failed(ErrorType.INVALID_RESPONSE, f"HTTP {status}", status)
        error = error_of(self.server.name, status, answer)
        wait = headers.get("Retry-After", "").strip()
        error.retry_after_s = float(wait) if wait.isdigit() else None
        return error

    async def _once(
        self, method: str, url: str, headers: dict[str, str], *, json_body: Any = None, **options: Any
    ) -> tuple[int, httpx.Headers, Any]:
        if json_body is not None:
            options["content"] = json.dumps(json_body, ensure_ascii=False).encode()
            headers = headers | {"Content-Type": FHIR_JSON}
        try:
            with anyio.fail_after(max(0.0, self._ends - time.monotonic())):
                async with self._client.stream(method, url, headers=headers, **options) as response:
                    return response.status_code, response.headers, _json(await self._bytes(response))
        except (TimeoutError, httpx.TimeoutException) as error:
            raise self.failed(ErrorType.TIMEOUT) from error
        except httpx.ConnectError as error:
            raise self.failed(ErrorType.SERVICE_UNAVAILABLE) from error
        except (httpx.TransportError, httpx.DecodingError, httpx.InvalidURL, httpx.StreamError) as error:
            raise self.failed(ErrorType.INVALID_RESPONSE, "its answer broke off") from error

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
        entries = body.get("entry") or []
        readable = isinstance(entries, list) and all(isinstance(item, dict) for item in entries)
        resources = [item.get("resource") for item in entries] if readable else [None]
        if not all(isinstance(item, dict) for item in resources):
            raise self.failed(ErrorType.INVALID_RESPONSE, "a search result that cannot be read", status=200)
        for resource in resources:
            if failed_issues(resource):
                raise error_of(self.server.name, 200, resource)
        return resources

    def _next(self, body: Any) -> httpx.URL | None:
        links = body.get("link") or []
        url = next(
            (item.get("url") for item in links if isinstance(item, dict) and item.get("relation") == "next"), None
        )
        if not url:
            return None
        url, origin = httpx.URL(self.server.base_url + "/").join(str(url)), self.server.origin
        if (url.scheme, url.host, url.port) != (origin.scheme, origin.host, origin.port):
            # our token goes nowhere else
            raise self.failed(ErrorType.INVALID_RESPONSE, "its next page is on another server", status=200)
        return url


def _json(content: bytes) -> Any:
    """The JSON of an answer, or None where there is none: what that means depends on who asked."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
