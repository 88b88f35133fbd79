"""One HTTP client for the public APIs: a deadline, few retries, rate limits, a cache. Every failure is a ToolError.

The client runs on an event loop of its own, in a daemon thread, because only there can a deadline end a call whatever
the server does: drip bytes or headers, or never resolve. Callers stay synchronous and may come from any thread.
Query strings and bodies may hold a patient's words, keys or addresses: none of them reaches a message or a log.
"""

import asyncio
import hashlib
import json
import logging
import os
import random
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from datetime import UTC, datetime
from typing import Any, TypeVar

import httpx

from docgemma import __version__
from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge.http_cache import ResponseCache
from docgemma.knowledge.service import Bucket, Deadline, Fetched, Service, Transient, check_status, failed, same_host

T = TypeVar("T")
logger = logging.getLogger(__name__)

ATTEMPTS = 3
BACKOFF_S = 0.25  # doubled each time, with jitter
CONNECT_S = 4.0
MAX_BYTES = 16_000_000  # 25 of the longest drug labels are about 5 MB
MAX_REDIRECTS = 3


class Http:
    """GET JSON from the public APIs.

    Args:
        cache: where answers are kept; None keeps none.
        max_bytes: a larger body, unpacked, is refused without being read to its end.
    """

    def __init__(self, cache: ResponseCache | None = None, max_bytes: int = MAX_BYTES):
        self._cache, self._max_bytes = cache, max_bytes
        self._buckets: dict[str, Bucket] = {}
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: httpx.AsyncClient | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

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
        cached = self._cache.get(key) if self._cache else None
        if cached:
            try:
                return Fetched(parse(cached.data), cached.as_of)
            except ValueError:
                self._cache.discard(key)  # an older version of this program may have kept another shape
        raw, data = self._run(self._attempts(service, path, params, parse, deadline, missing))
        if self._cache and raw is not None:
            self._cache.put(key, raw, service.ttl_s)
        return Fetched(data, datetime.now(UTC).date().isoformat())

    def close(self) -> None:
        """End the connections and the thread, and with an error what still waits; a later `get` starts them again."""
        with self._lock:
            loop, client, thread = self._loop, self._client, self._thread
            self._loop = self._client = self._thread = None
        if loop is None:
            return
        asyncio.run_coroutine_threadsafe(end(client), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():  # a forked child has no such thread
                self._start()
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError as error:
            raise ToolError(ErrorType.SERVICE_UNAVAILABLE, "The connection was closed meanwhile.") from error
        except BaseException:
            future.cancel()
            raise

    def _start(self) -> None:
        logging.getLogger("httpx").addFilter(without_path)
        self._client = httpx.AsyncClient(
            headers={"User-Agent": f"docgemma/{__version__}", "Accept": "application/json"}
        )
        self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
        self._thread = threading.Thread(target=self._loop.run_forever, name="docgemma-http", daemon=True)
        self._thread.start()

    async def _attempts(self, service, path, params, parse, deadline, missing) -> tuple[Any, T]:
        """Try, wait as told or a little longer each time, and try again while the deadline allows it."""
        for attempt in range(ATTEMPTS):
            try:
                await self._slot(service, deadline)
                return await self._once(service, path, params, parse, deadline, missing)
            except Transient as failure:
                pause = BACKOFF_S * 2**attempt * random.uniform(0.75, 1.25)
                if failure.retry_after_s is not None:
                    pause = failure.retry_after_s
                if attempt == ATTEMPTS - 1 or pause >= deadline.remaining():
                    raise failure.error from failure.__cause__
                logger.info("%s Waiting %.1f s.", failure.error, pause)
                await asyncio.sleep(pause)
        raise AssertionError("unreachable")

    async def _slot(self, service: Service, deadline: Deadline) -> None:
        """Wait for a place within the service's quota."""
        bucket = self._buckets.setdefault(service.base_url, Bucket(service.per_second, service.burst))
        wait = bucket.wait_s()
        if wait >= deadline.remaining():
            late = deadline.remaining() == 0
            raise failed(service, ErrorType.TIMEOUT if late else ErrorType.RATE_LIMIT, "has no time or quota left")
        bucket.take()
        await asyncio.sleep(wait)

    async def _once(self, service, path, params, parse, deadline, missing) -> tuple[Any, T]:
        try:
            async with asyncio.timeout(deadline.remaining()):
                status, body = await self._read(service, path, params, deadline)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise failed(service, ErrorType.TIMEOUT, "did not answer in time") from error
        except (httpx.ConnectError, httpx.ProxyError, OSError, UnicodeError) as error:  # the last: an odd host name
            raise failed(service, ErrorType.SERVICE_UNAVAILABLE, "could not be reached") from error
        except httpx.TransportError as error:  # cut off half-way
            raise Transient(failed(service, ErrorType.INVALID_RESPONSE, "ended its answer half-way")) from error
        except (httpx.DecodingError, httpx.InvalidURL) as error:
            raise failed(service, ErrorType.INVALID_RESPONSE, "sent bytes that cannot be unpacked") from error
        try:
            if status == 404:
                if missing is None:
                    raise ValueError("404")
                return None, missing(body)
            raw = json.loads(body)
            return raw, parse(raw)
        except (ValueError, RecursionError):
            # no chain: a parser's message quotes the body
            raise failed(service, ErrorType.INVALID_RESPONSE, f"did not answer as {service.name} does") from None

    async def _read(self, service: Service, path: str, params: dict, deadline: Deadline) -> tuple[int, bytes]:
        """Status (200 or 404) and body, after redirects within the host; anything else is raised."""
        url = httpx.URL(f"{service.base_url.rstrip('/')}/{path}", params=params)
        limits = httpx.Timeout(deadline.remaining() or 0.001, connect=min(CONNECT_S, deadline.remaining() or 0.001))
        for _ in range(MAX_REDIRECTS + 1):
            async with self._client.stream("GET", url, timeout=limits) as response:
                if response.next_request is None:
                    check_status(service, response)
                    return response.status_code, await self._body(service, response)
                url, before = response.next_request.url, url
            if not same_host(before, url):
                raise failed(service, ErrorType.INVALID_RESPONSE, "redirects to another host")
        raise failed(service, ErrorType.INVALID_RESPONSE, "redirects without end")

    async def _body(self, service: Service, response: httpx.Response) -> bytes:
        declared = response.headers.get("Content-Length", "0")
        body = bytearray()
        if not declared.isdigit() or int(declared) <= self._max_bytes:
            async for chunk in response.aiter_bytes(65536):
                body += chunk
                if len(body) > self._max_bytes:
                    break
            else:
                return bytes(body)
        raise failed(service, ErrorType.INVALID_RESPONSE, f"sent more than {self._max_bytes // 1_000_000} MB")


async def end(client: httpx.AsyncClient) -> None:
    """Runs on the loop: cancel what is under way, then close the connections."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await client.aclose()


def without_path(record: logging.LogRecord) -> bool:
    """httpx logs whole addresses; keep the host alone, since paths and queries name patients and hold keys."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            arg.copy_with(path="/", query=None, fragment=None, username=None, password=None)
            if isinstance(arg, httpx.URL)
            else arg
            for arg in record.args
        )
    return True
