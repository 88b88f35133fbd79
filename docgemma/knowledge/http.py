"""Ask the public APIs for JSON, with a deadline, few retries, a quota and a cache. Every failure is a ToolError.

Requests run on an event loop in a thread of its own, because only there can a deadline end a call whatever the server
does: drip bytes or headers, or never resolve. Callers stay synchronous and may come from any thread.
Query strings and bodies may hold a patient's words or keys: none of them reaches a message or a log.
"""

import asyncio
import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import httpx
import stamina
from anyio.from_thread import BlockingPortal, start_blocking_portal

from docgemma import __version__
from docgemma.errors import ConfigError, ErrorType, ToolError
from docgemma.knowledge.http_cache import ResponseCache

T = TypeVar("T")
ATTEMPTS = 3
BACKOFF_S = 0.25  # doubled each time, with jitter
MAX_PAUSE_S = 1.0  # where the service does not say how long to wait
CONNECT_S = 4.0
MAX_BYTES = 16_000_000  # 25 of the longest drug labels are about 5 MB
HINT = "Try again in a minute, or set DOCGEMMA_SOURCES=offline."
# httpx logs whole addresses; stamina warns of every pause, which ends in an answer or in our own error
QUIET = {"httpx": logging.WARNING, "httpcore": logging.WARNING, "stamina": logging.ERROR}
STATUSES = {
    401: ErrorType.NOT_PERMITTED, 403: ErrorType.NOT_PERMITTED, 451: ErrorType.NOT_PERMITTED,
    405: ErrorType.INVALID_RESPONSE, 406: ErrorType.INVALID_RESPONSE, 410: ErrorType.INVALID_RESPONSE,
    407: ErrorType.SERVICE_UNAVAILABLE,  # a proxy stands in the way
    408: ErrorType.TIMEOUT, 429: ErrorType.RATE_LIMIT, 503: ErrorType.SERVICE_UNAVAILABLE,
}  # fmt: skip


@dataclass(frozen=True)
class Service:
    """A public API: its address, its quota, and how long its answers may be reused."""

    name: str  # "openFDA"
    base_url: str
    setting: str  # the variable that moves it, for error lines
    per_second: float  # its quota, as documented
    burst: int
    ttl_s: float

    def __post_init__(self) -> None:
        try:
            url = httpx.URL(self.base_url)
        except httpx.InvalidURL:
            url = httpx.URL("")
        if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > 65535:
            raise ConfigError(f"{self.setting} is not a web address.", hint="Write it like https://api.example.org.")

    def failed(self, error_type: ErrorType, what: str) -> ToolError:
        return ToolError(error_type, f"{self.name} {what}.", hint=HINT, service=self.name)


@dataclass(frozen=True)
class Fetched(Generic[T]):
    """An answer, parsed, and the ISO date on which the service gave it."""

    data: T
    as_of: str


@dataclass(frozen=True)
class Deadline:
    """The moment on the monotonic clock by which a whole call ends."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        return cls(time.monotonic() + seconds)

    def remaining(self) -> float:
        return max(0.0, self.at - time.monotonic())

    def share(self, fraction: float) -> "Deadline":
        """An earlier deadline, for a part of the work that may not eat the rest."""
        return Deadline.after(self.remaining() * fraction)


class Transient(Exception):
    """A failure that the same request may survive a moment later."""

    def __init__(self, error: ToolError, retry_after_s: float | None = None):
        self.error, self.retry_after_s = error, retry_after_s


class Bucket:
    """A token bucket; used on the event loop's thread only, so it needs no lock."""

    def __init__(self, per_second: float, burst: int):
        self.rate, self.burst, self.tokens, self.at = per_second, float(burst), float(burst), time.monotonic()

    def wait_s(self) -> float:
        now = time.monotonic()
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate)
        self.at = now
        return max(0.0, (1 - self.tokens) / self.rate)

    def take(self) -> None:
        self.tokens -= 1  # below zero is a place in the queue


class Http:
    """GET JSON from the public APIs.

    Args:
        cache: where answers are kept; None keeps none.
        max_bytes: a larger body, unpacked, is refused without being read to its end.
    """

    def __init__(self, cache: ResponseCache | None = None, max_bytes: int = MAX_BYTES):
        self._cache, self._max_bytes = cache, max_bytes
        self._buckets: dict[str, Bucket] = {}
        self._lock, self._pid = threading.Lock(), 0
        self._portal: BlockingPortal | None = None
        self._exit = ExitStack()

    def get(
        self,
        service: Service,
        path: str,
        params: dict[str, str],
        parse: Callable[[Any], T],
        deadline: Deadline,
        missing: Callable[[bytes], T] | None = None,
    ) -> Fetched[T]:
        """One answer of a service, from the cache where that is fresh.

        Args:
            parse: decoded JSON to what the caller wants; ValueError (pydantic's too) means a wrong shape.
            missing: what a 404 and its body mean, where 404 is an answer; ValueError where it is not.

        Raises:
            ToolError: in one of the known ways; nothing but a well-formed 200 is ever cached.
        """
        key = hashlib.sha256(json.dumps([service.base_url, path, params], sort_keys=True).encode()).hexdigest()
        if self._cache and (cached := self._cache.get(key)):
            try:
                return Fetched(parse(cached.data), cached.as_of)
            except ValueError:  # an older version of this program may have kept another shape
                pass
        status, body = self._run(self._fetch, service, path, params, deadline)
        today = datetime.now(UTC).date().isoformat()
        try:
            if status == 404:
                if missing is None:
                    raise ValueError("404")
                return Fetched(missing(body), today)
            raw = json.loads(body)
            data = parse(raw)
        except (ValueError, RecursionError):
            # no chain: a parser's message quotes the body
            raise service.failed(ErrorType.INVALID_RESPONSE, f"did not answer as {service.name} does") from None
        if self._cache:
            self._cache.put(key, raw, service.ttl_s)
        return Fetched(data, today)

    def close(self) -> None:
        """End the connections and the thread, and with an error what still waits; a later `get` starts them again."""
        with self._lock:
            portal, self._portal = self._portal, None
        if portal is not None and self._pid == os.getpid():
            portal.call(self._client.aclose)
            with suppress(CancelledError), self._exit:
                raise CancelledError  # the portal then cancels what still runs, where a plain exit waits for it

    def _run(self, work: Callable[..., Awaitable[T]], *args: Any) -> T:
        with self._lock:
            if self._portal is None or self._pid != os.getpid():  # a forked child has no such thread
                for name, level in QUIET.items():
                    logging.getLogger(name).setLevel(level)
                self._parents = self._exit  # kept, for to forget it would close it
                self._exit, self._pid = ExitStack(), os.getpid()
                self._portal = self._exit.enter_context(start_blocking_portal(name="docgemma-http"))
                self._client = httpx.AsyncClient(
                    headers={"User-Agent": f"docgemma/{__version__}", "Accept": "application/json"}
                )
            future = self._portal.start_task_soon(work, *args)
        try:
            return future.result()
        except CancelledError as error:
            raise ToolError(ErrorType.SERVICE_UNAVAILABLE, "The connection was closed meanwhile.") from error
        except Transient as failure:
            raise failure.error from failure.__cause__

    async def _fetch(
        self, service: Service, path: str, params: dict[str, str], deadline: Deadline
    ) -> tuple[int, bytes]:
        """Try, wait as told or a little longer each time, and try again while the deadline allows it."""

        def may_retry(error: Exception) -> bool | float:
            if not isinstance(error, Transient):
                return False
            if error.retry_after_s is None:
                return deadline.remaining() > MAX_PAUSE_S
            return error.retry_after_s if error.retry_after_s < deadline.remaining() else False

        async for attempt in stamina.retry_context(
            on=may_retry, attempts=ATTEMPTS, timeout=None,
            wait_initial=BACKOFF_S, wait_max=MAX_PAUSE_S, wait_jitter=BACKOFF_S,
        ):  # fmt: skip
            with attempt:
                await self._wait_for_quota(service, deadline)
                return await self._once(service, path, params, deadline)
        raise AssertionError("unreachable")

    async def _wait_for_quota(self, service: Service, deadline: Deadline) -> None:
        bucket = self._buckets.setdefault(service.base_url, Bucket(service.per_second, service.burst))
        wait = bucket.wait_s()
        if wait >= deadline.remaining():
            late = deadline.remaining() == 0
            raise service.failed(ErrorType.TIMEOUT if late else ErrorType.RATE_LIMIT, "has no time or quota left")
        bucket.take()
        await asyncio.sleep(wait)

    async def _once(self, service: Service, path: str, params: dict[str, str], deadline: Deadline) -> tuple[int, bytes]:
        """Status (200 or 404) and body of one request; anything else is raised."""
        left = deadline.remaining() or 0.001
        try:
            url = httpx.URL(f"{service.base_url.rstrip('/')}/{path}", params=params)
            limits = httpx.Timeout(left, connect=min(CONNECT_S, left))
            async with asyncio.timeout(left):
                async with self._client.stream("GET", url, timeout=limits) as response:
                    check_status(service, response)
                    return response.status_code, await self._body(service, response)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise service.failed(ErrorType.TIMEOUT, "did not answer in time") from error
        except (httpx.ConnectError, httpx.ProxyError, OSError, UnicodeError) as error:  # the last: an odd host name
            raise service.failed(ErrorType.SERVICE_UNAVAILABLE, "could not be reached") from error
        except httpx.TransportError as error:  # cut off half-way
            raise Transient(service.failed(ErrorType.INVALID_RESPONSE, "ended its answer half-way")) from error
        except (httpx.DecodingError, httpx.InvalidURL) as error:
            raise service.failed(ErrorType.INVALID_RESPONSE, "sent bytes that cannot be unpacked") from error

    async def _body(self, service: Service, response: httpx.Response) -> bytes:
        declared, body = response.headers.get("Content-Length", "0"), bytearray()
        if not declared.isdigit() or int(declared) <= self._max_bytes:
            async for chunk in response.aiter_bytes(65536):
                body += chunk
                if len(body) > self._max_bytes:
                    break
            else:
                return bytes(body)
        raise service.failed(ErrorType.INVALID_RESPONSE, f"sent more than {self._max_bytes // 1_000_000} MB")


def check_status(service: Service, response: httpx.Response) -> None:
    """Pass 200 and 404; raise everything else in its known way. No service has reason to redirect."""
    status = response.status_code
    if status in (200, 404):
        return
    other = ErrorType.INVALID_ARGS if 400 <= status < 500 else ErrorType.INVALID_RESPONSE
    kind = STATUSES.get(status, ErrorType.SERVER_ERROR if status >= 500 else other)
    error = service.failed(kind, f"answered HTTP {status}")
    if kind in (ErrorType.RATE_LIMIT, ErrorType.SERVICE_UNAVAILABLE, ErrorType.SERVER_ERROR):
        wait = response.headers.get("Retry-After", "")
        raise Transient(error, float(wait) if wait.isdecimal() else None)
    raise error
