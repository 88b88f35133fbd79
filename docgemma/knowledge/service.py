"""What is known about a public API (address, quota) and what its HTTP statuses mean. No request is made here."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Generic, TypeVar

import httpx

from docgemma.errors import ConfigError, ErrorType, ToolError

T = TypeVar("T")
HINT = "Try again in a minute, or set DOCGEMMA_SOURCES=offline."


@dataclass(frozen=True)
class Service:
    """A public API and its manners."""

    name: str  # "openFDA"
    base_url: str
    setting: str  # the variable that moves it, for error lines
    per_second: float  # its quota, as documented
    burst: int
    ttl_s: float  # how long an answer may be reused

    def __post_init__(self):
        try:
            url = httpx.URL(self.base_url)
        except httpx.InvalidURL:
            url = httpx.URL("")
        if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > 65535:
            raise ConfigError(f"{self.setting} is not a web address.", hint="Write it like https://api.example.org.")


@dataclass(frozen=True)
class Fetched(Generic[T]):
    """An answer, parsed, and the ISO date on which the service gave it."""

    data: T
    as_of: str


@dataclass(frozen=True)
class Deadline:
    """A moment on the monotonic clock by which the whole of a call ends."""

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


def check_status(service: Service, response: httpx.Response) -> None:
    """Pass 200 and 404; raise everything else in its known way."""
    status = response.status_code
    if status in (200, 404):
        return
    said = f"answered HTTP {status}"
    if status == 429:
        error = failed(service, ErrorType.RATE_LIMIT, said)
        raise Transient(error, retry_after_s(response.headers.get("Retry-After")))
    if status in (503, 407):  # 407: a proxy stands in the way
        error = failed(service, ErrorType.SERVICE_UNAVAILABLE, said)
        raise Transient(error, retry_after_s(response.headers.get("Retry-After")))
    if status >= 500:
        raise Transient(failed(service, ErrorType.SERVER_ERROR, said))
    if status == 408:
        raise failed(service, ErrorType.TIMEOUT, said)
    if status in (401, 403, 451):
        raise failed(service, ErrorType.NOT_PERMITTED, said)
    if 400 <= status < 500 and status not in (405, 406, 410):
        raise failed(service, ErrorType.INVALID_ARGS, said)
    raise failed(service, ErrorType.INVALID_RESPONSE, said)


def retry_after_s(value: str | None) -> float | None:
    """Seconds to wait, from the header's number or date; None where it says nothing usable."""
    if not value:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def same_host(before: httpx.URL, after: httpx.URL) -> bool:
    """The same scheme, host and port; or the same host by https instead of http."""
    upgraded = before.scheme == "http" and after.scheme == "https"
    return before.host == after.host and (upgraded or (before.scheme, before.port) == (after.scheme, after.port))


def failed(service: Service, error_type: ErrorType, what: str) -> ToolError:
    return ToolError(error_type, f"{service.name} {what}.", hint=HINT, service=service.name)
