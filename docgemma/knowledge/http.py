"""Ask the public APIs for JSON: a deadline, few retries, a quota, a cache on disk. Every failure is a ToolError.

A request runs in a thread of its own, which is left behind at the deadline: a name server that never answers and a
server that drips headers cannot be interrupted. Callers may come from any thread.
Query strings and bodies may hold a patient's words or keys: none of them reaches a message or a log.
"""

import gzip
import hashlib
import json
import logging
import os
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

import httpx
import stamina
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, model_validator

from docgemma import __version__
from docgemma.errors import ConfigError, ErrorType, ToolError
from docgemma.paths import private_file, private_folder

T = TypeVar("T")
ATTEMPTS = 3
BACKOFF_S = 0.25  # doubled each time, with jitter
MAX_PAUSE_S = 1.0  # where the service does not say how long to wait
CONNECT_S = 4.0
MAX_BYTES = 16_000_000  # 25 of the longest drug labels are about 5 MB
CACHE_BYTES = 50_000_000
HINT = "Try again in a minute, or set DOCGEMMA_SOURCES=offline."
# httpx logs whole addresses; stamina warns of every pause, which ends in an answer or in our own error
QUIET = {"httpx": logging.WARNING, "httpcore": logging.WARNING, "stamina": logging.ERROR}
STATUSES = {
    401: ErrorType.NOT_PERMITTED, 403: ErrorType.NOT_PERMITTED, 451: ErrorType.NOT_PERMITTED,
    405: ErrorType.INVALID_RESPONSE, 406: ErrorType.INVALID_RESPONSE, 410: ErrorType.INVALID_RESPONSE,
    407: ErrorType.SERVICE_UNAVAILABLE,  # a proxy stands in the way
    408: ErrorType.TIMEOUT, 429: ErrorType.RATE_LIMIT, 503: ErrorType.SERVICE_UNAVAILABLE,
}  # fmt: skip


class Wire(BaseModel):
    """What a service sends: unknown keys are ignored, null means absent, numbers may stand for text."""

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


class Service:
    """A public API: GET JSON from it.

    Args:
        name: as people call it, "openFDA".
        setting: the variable that moves `base_url`, for error lines.
        per_second: its quota, as documented, and `burst`, how many requests may go at once.
        ttl_s: how long its answers may be reused.
        cache: the folder in which answers are kept; None keeps none.
        max_bytes: a larger body, unpacked, is refused without being read to its end.
    """

    def __init__(
        self, name: str, base_url: str, setting: str, per_second: float, burst: int, ttl_s: float,
        cache: Path | None = None, max_bytes: int = MAX_BYTES,
    ):  # fmt: skip
        try:
            url = httpx.URL(base_url)
        except httpx.InvalidURL:
            url = httpx.URL("")
        if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > 65535:
            raise ConfigError(f"{setting} is not a web address.", hint="Write it like https://api.example.org.")
        self.name, self.base_url = name, base_url.rstrip("/")
        self._every_s, self._burst, self._ttl_s, self._max_bytes = 1 / per_second, burst, ttl_s, max_bytes
        self._cache = ResponseCache(cache) if cache else None
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self._next = 0.0  # the moment at which the quota allows a request
        for logged, level in QUIET.items():
            logging.getLogger(logged).setLevel(level)

    def failed(self, error_type: ErrorType, what: str) -> ToolError:
        return ToolError(error_type, f"{self.name} {what}.", hint=HINT, service=self.name)

    def get(
        self,
        path: str,
        params: dict[str, str],
        parse: Callable[[Any], T],
        deadline: Deadline,
        missing: Callable[[bytes], T] | None = None,
    ) -> Fetched[T]:
        """One answer, from the cache where that is fresh.

        Args:
            parse: decoded JSON to what the caller wants; ValueError (pydantic's too) means a wrong shape.
            missing: what a 404 and its body mean, where 404 is an answer; ValueError where it is not.

        Raises:
            ToolError: in one of the known ways; nothing but a well-formed 200 is ever cached.
        """
        key = hashlib.sha256(json.dumps([self.base_url, path, params], sort_keys=True).encode()).hexdigest()
        if self._cache and (cached := self._cache.get(key, self._ttl_s)):
            with suppress(ValueError):  # an older version of this program may have kept another shape
                return Fetched(parse(cached.data), cached.as_of)
        status, body = self._within_deadline(path, params, deadline)
        today = _day(time.time())
        try:
            if status == 404:
                if missing is None:
                    raise ValueError("404")
                return Fetched(missing(body), today)
            raw = json.loads(body)
            data = parse(raw)
        except (ValueError, RecursionError):
            # no chain: a parser's message quotes the body
            raise self.failed(ErrorType.INVALID_RESPONSE, f"did not answer as {self.name} does") from None
        if self._cache:
            self._cache.put(key, raw)
        return Fetched(data, today)

    def close(self) -> None:
        """End the connections; a later `get` opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client:
            client.close()

    def _within_deadline(self, path: str, params: dict[str, str], deadline: Deadline) -> tuple[int, bytes]:
        future: Future[tuple[int, bytes]] = Future()

        def work() -> None:
            try:
                future.set_result(self._fetch(path, params, deadline))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=work, name="docgemma-http", daemon=True).start()
        try:
            return future.result(deadline.remaining())
        except Transient as failure:
            raise failure.error from failure.__cause__
        except TimeoutError as error:
            raise self.failed(ErrorType.TIMEOUT, "did not answer in time") from error

    def _fetch(self, path: str, params: dict[str, str], deadline: Deadline) -> tuple[int, bytes]:
        """Try, wait as told or a little longer each time, and try again while the deadline allows it."""

        def may_retry(error: Exception) -> bool | float:
            if not isinstance(error, Transient):
                return False
            if error.retry_after_s is None:
                return deadline.remaining() > MAX_PAUSE_S
            return error.retry_after_s if error.retry_after_s < deadline.remaining() else False

        retried = stamina.RetryingCaller(
            ATTEMPTS, timeout=None, wait_initial=BACKOFF_S, wait_max=MAX_PAUSE_S, wait_jitter=BACKOFF_S
        )
        return retried(may_retry, self._once, path, params, deadline)

    def _wait_for_quota(self, deadline: Deadline) -> None:
        """Let a burst through and then one request at a time."""
        with self._lock:
            now = time.monotonic()
            due = max(self._next, now - (self._burst - 1) * self._every_s)
            if due >= deadline.at:
                late = now >= deadline.at
                raise self.failed(ErrorType.TIMEOUT if late else ErrorType.RATE_LIMIT, "has no time or quota left")
            self._next = due + self._every_s
        time.sleep(max(0.0, due - now))

    def _once(self, path: str, params: dict[str, str], deadline: Deadline) -> tuple[int, bytes]:
        """Status (200 or 404) and body of one request, once the quota allows it; anything else is raised."""
        self._wait_for_quota(deadline)
        left = deadline.remaining() or 0.001
        try:
            url = httpx.URL(f"{self.base_url}/{path}", params=params)
            limits = httpx.Timeout(left, connect=min(CONNECT_S, left))
            with self._open().stream("GET", url, timeout=limits) as response:
                self._check_status(response)
                return response.status_code, self._body(response, deadline)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise self.failed(ErrorType.TIMEOUT, "did not answer in time") from error
        except (httpx.ConnectError, httpx.ProxyError, OSError, UnicodeError) as error:  # the last: an odd host name
            raise self.failed(ErrorType.SERVICE_UNAVAILABLE, "could not be reached") from error
        except httpx.TransportError as error:  # cut off half-way
            raise Transient(self.failed(ErrorType.INVALID_RESPONSE, "ended its answer half-way")) from error
        except (httpx.DecodingError, httpx.InvalidURL) as error:
            raise self.failed(ErrorType.INVALID_RESPONSE, "sent bytes that cannot be unpacked") from error

    def _open(self) -> httpx.Client:
        headers = {"User-Agent": f"docgemma/{__version__}", "Accept": "application/json"}
        with self._lock:
            self._client = self._client or httpx.Client(headers=headers)
            return self._client

    def _check_status(self, response: httpx.Response) -> None:
        """Pass 200 and 404; raise everything else in its known way. No service has reason to redirect."""
        status = response.status_code
        if status in (200, 404):
            return
        other = ErrorType.INVALID_ARGS if 400 <= status < 500 else ErrorType.INVALID_RESPONSE
        kind = STATUSES.get(status, ErrorType.SERVER_ERROR if status >= 500 else other)
        error = self.failed(kind, f"answered HTTP {status}")
        if kind in (ErrorType.RATE_LIMIT, ErrorType.SERVICE_UNAVAILABLE, ErrorType.SERVER_ERROR):
            wait = response.headers.get("Retry-After", "")
            raise Transient(error, float(wait) if wait.isdecimal() else None)
        raise error

    def _body(self, response: httpx.Response, deadline: Deadline) -> bytes:
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > self._max_bytes:
                size = f"more than {self._max_bytes // 1_000_000} MB"
                raise self.failed(ErrorType.INVALID_RESPONSE, f"sent {size}")
            if not deadline.remaining():
                raise TimeoutError
        return bytes(body)


class ResponseCache:
    """JSON answers by key, a file each, readable by its owner only. Any trouble with a file is a miss.

    hishel was looked at: it keeps answers before they are parsed (a wrong shape too), without a bound on their size.
    """

    def __init__(self, folder: Path, max_bytes: int = CACHE_BYTES):
        self.folder, self.max_bytes = folder, max_bytes

    def get(self, key: str, ttl_s: float) -> Fetched[Any] | None:
        """The answer and the date on which it was given, or None: absent, older than `ttl_s` seconds or unreadable."""
        with suppress(OSError, EOFError, zlib.error, ValueError):
            file = self.folder / key
            fetched = file.stat().st_mtime
            if time.time() - fetched < ttl_s:
                return Fetched(json.loads(gzip.decompress(file.read_bytes())), _day(fetched))
        return None

    def put(self, key: str, data: Any) -> None:
        """Keep an answer; the oldest go where all of them are too much."""
        with suppress(OSError):
            temporary = private_folder(self.folder) / f".{key}.{os.getpid()}.{threading.get_ident()}"
            private_file(temporary).write_bytes(gzip.compress(json.dumps(data).encode(), 1))
            temporary.replace(self.folder / key)
            kept = 0
            for file in sorted(self.folder.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True):
                kept += file.stat().st_size
                if kept > self.max_bytes:
                    file.unlink(missing_ok=True)


def _day(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).date().isoformat()
