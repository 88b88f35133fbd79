"""One request to a server: a deadline for all of it, a bound on its answer, few retries, typed failures.

A request runs in a thread of its own, which is left behind at the deadline: a name server that never answers and a
server that drips headers cannot be interrupted. Callers may come from any thread.
Addresses, headers and bodies may hold a patient's data or keys: none of them reaches a message or a log.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
import stamina

from docgemma.errors import ErrorType, ToolError

T = TypeVar("T")
ATTEMPTS = 3
BACKOFF_S = 0.25  # doubled each time, with jitter
MAX_PAUSE_S = 1.0  # where the server does not say how long to wait
CONNECT_S = 4.0
Failure = Callable[[ErrorType, str], ToolError]  # a caller's error from its type and what the server did


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


class Passing(Exception):
    """A failure that the same request may survive a moment later."""

    def __init__(self, error: ToolError, response: httpx.Response | None = None):
        said = response.headers.get("Retry-After", "").strip() if response else ""
        self.error, self.retry_after_s = error, float(said) if said.isdecimal() else None


def retried(work: Callable[[], T], deadline: Deadline, attempts: int = ATTEMPTS) -> T:
    """Do it; while it fails in passing and the deadline allows, wait as told or a little longer each time, and again.

    Raises:
        ToolError: that of the last failure.
    """

    def may_retry(error: Exception) -> bool | float:
        if not isinstance(error, Passing):
            return False
        if error.retry_after_s is None:
            return deadline.remaining() > MAX_PAUSE_S
        return error.retry_after_s if error.retry_after_s < deadline.remaining() else False

    try:
        return stamina.RetryingCaller(
            attempts, timeout=None, wait_initial=BACKOFF_S, wait_max=MAX_PAUSE_S, wait_jitter=BACKOFF_S
        )(may_retry, work)
    except Passing as failure:
        raise failure.error from failure.__cause__


def send(
    client: httpx.Client, method: str, url: str | httpx.URL, deadline: Deadline, max_bytes: int, failed: Failure,
    **more: Any,
) -> tuple[httpx.Response, bytes]:  # fmt: skip
    """The answer of one request, of any status, and its body, unpacked.

    Raises:
        ToolError: what `failed` makes of a timeout, an unreachable server or a body that cannot be taken.
        Passing: the answer broke off.
    """

    def exchange() -> tuple[httpx.Response, bytes]:
        left, body = deadline.remaining() or 0.001, bytearray()
        limits = httpx.Timeout(left, connect=min(CONNECT_S, left))
        with client.stream(method, url, timeout=limits, **more) as response:
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > max_bytes:
                    raise failed(ErrorType.INVALID_RESPONSE, f"sent more than {max_bytes // 1_000_000} MB")
                if not deadline.remaining():
                    raise TimeoutError
            return response, bytes(body)

    try:
        return _in_time(exchange, deadline)
    except (TimeoutError, httpx.TimeoutException) as error:
        raise failed(ErrorType.TIMEOUT, "did not answer in time") from error
    except (httpx.ConnectError, httpx.ProxyError, OSError, UnicodeError) as error:  # the last: an odd host name
        raise failed(ErrorType.SERVICE_UNAVAILABLE, "could not be reached") from error
    except httpx.TransportError as error:
        raise Passing(failed(ErrorType.INVALID_RESPONSE, "broke off its answer")) from error
    except (httpx.DecodingError, httpx.InvalidURL, httpx.StreamError) as error:
        raise failed(ErrorType.INVALID_RESPONSE, "sent what cannot be unpacked") from error


def _in_time(work: Callable[[], T], deadline: Deadline) -> T:
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="docgemma-http", daemon=True).start()
    return future.result(deadline.remaining())


def log_no_addresses() -> None:
    """Quieten what would log them: httpx and httpcore do at each request, and stamina warns of every pause."""
    for name, level in (("httpx", logging.WARNING), ("httpcore", logging.WARNING), ("stamina", logging.ERROR)):
        logging.getLogger(name).setLevel(level)
