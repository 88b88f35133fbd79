"""Ask the public APIs for JSON, within their quotas, with a cache on disk. Every failure is a ToolError."""

import gzip
import hashlib
import json
import os
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import httpx
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, model_validator

from docgemma import __version__
from docgemma.errors import ConfigError, ErrorType, ToolError
from docgemma.http import Deadline, Passing, log_no_addresses, retried, send
from docgemma.paths import private_file, private_folder

T = TypeVar("T")
MAX_BYTES = 16_000_000  # 25 of the longest drug labels are about 5 MB
CACHE_BYTES = 50_000_000
HINT = "Try again in a minute, or set DOCGEMMA_SOURCES=offline."
HEADERS = {"User-Agent": f"docgemma/{__version__}", "Accept": "application/json"}
PASSING = frozenset({ErrorType.RATE_LIMIT, ErrorType.SERVICE_UNAVAILABLE, ErrorType.SERVER_ERROR})
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
        self._next = 0.0  # the moment at which the quota allows a request
        log_no_addresses()

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
        url = f"{self.base_url}/{path}"
        status, body = retried(lambda: self._once(url, params, deadline), deadline)
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

    @cached_property
    def _client(self) -> httpx.Client:
        return httpx.Client(headers=HEADERS)

    def close(self) -> None:
        """End the connections; a later `get` opens new ones."""
        if client := self.__dict__.pop("_client", None):
            client.close()

    def _once(self, url: str, params: dict[str, str], deadline: Deadline) -> tuple[int, bytes]:
        """Status (200 or 404) and body of one request; no service has reason to redirect."""
        self._wait_for_quota(deadline)
        response, body = send(self._client, "GET", url, deadline, self._max_bytes, self.failed, params=params)
        status = response.status_code
        if status in (200, 404):
            return status, body
        other = ErrorType.INVALID_ARGS if 400 <= status < 500 else ErrorType.INVALID_RESPONSE
        kind = STATUSES.get(status, ErrorType.SERVER_ERROR if status >= 500 else other)
        error = self.failed(kind, f"answered HTTP {status}")
        raise Passing(error, response) if kind in PASSING else error

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
