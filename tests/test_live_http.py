"""The HTTP client against servers that really misbehave."""

import gzip
import logging
import multiprocessing
import socket
import threading
import time

import pytest

from docgemma.errors import ConfigError, ErrorType, ToolError
from docgemma.http import ATTEMPTS, Deadline
from docgemma.knowledge.http import Service
from tests.standin import misbehave as bad
from tests.standin.misbehave import Misbehaving, status

OK = status(200, b'{"answer": 1}')


def service(url: str, **manners) -> Service:
    manners = {"per_second": 1000, "burst": 1000, "ttl_s": 60, **manners}
    return Service("Test API", url, "DOCGEMMA_TEST_URL", **manners)


class Services:
    """One service an address, so that a second question finds its connections, quota and cache."""

    def __init__(self, **manners):
        self.manners, self.open = manners, {}

    def at(self, url: str, **manners) -> Service:
        return self.open.setdefault(url, service(url, **self.manners, **manners))

    def close(self):
        for one in self.open.values():
            one.close()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr("docgemma.http.BACKOFF_S", 0.01)


@pytest.fixture
def http():
    client = Services(max_bytes=1_000_000)
    yield client
    client.close()


def parse(raw):
    if not isinstance(raw, dict) or not isinstance(raw.get("answer"), int):
        raise ValueError("another shape")
    return raw["answer"]


def get(http: Services, url: str, seconds: float = 5.0, **manners):
    return http.at(url, **manners).get("path", {"q": "secret words"}, parse, Deadline.after(seconds))


def error_of(http: Services, url: str, seconds: float = 5.0, **manners) -> ToolError:
    with pytest.raises(ToolError) as caught:
        get(http, url, seconds, **manners)
    return caught.value


FAILURES = [
    ("hangs", bad.hang, 0.3, ErrorType.TIMEOUT),
    ("drips its body", bad.drip_body, 0.3, ErrorType.TIMEOUT),
    ("drips its headers", bad.drip_headers, 0.3, ErrorType.TIMEOUT),
    ("408", status(408), 5, ErrorType.TIMEOUT),
    ("429", status(429), 5, ErrorType.RATE_LIMIT),
    ("429, come back tomorrow", status(429, Retry_After="86400"), 5, ErrorType.RATE_LIMIT),
    ("500", status(500), 5, ErrorType.SERVER_ERROR),
    ("502", status(502), 5, ErrorType.SERVER_ERROR),
    ("504", status(504), 5, ErrorType.SERVER_ERROR),
    ("503", status(503), 5, ErrorType.SERVICE_UNAVAILABLE),
    ("closes half-way", bad.half, 5, ErrorType.INVALID_RESPONSE),
    ("closes without a word", bad.nothing, 5, ErrorType.INVALID_RESPONSE),
    ("HTML", bad.HTML, 5, ErrorType.INVALID_RESPONSE),
    ("broken JSON", bad.BROKEN_JSON, 5, ErrorType.INVALID_RESPONSE),
    ("not UTF-8", bad.NOT_UTF8, 5, ErrorType.INVALID_RESPONSE),
    ("JSON without end", bad.DEEP_JSON, 5, ErrorType.INVALID_RESPONSE),
    ("another shape", bad.WRONG_SHAPE, 5, ErrorType.INVALID_RESPONSE),
    ("a list", bad.A_LIST, 5, ErrorType.INVALID_RESPONSE),
    ("broken gzip", bad.BAD_GZIP, 5, ErrorType.INVALID_RESPONSE),
    ("50 MB", bad.endless, 5, ErrorType.INVALID_RESPONSE),
    ("50 MB, declared", bad.declared_big, 5, ErrorType.INVALID_RESPONSE),
    ("50 MB, packed", bad.bomb, 10, ErrorType.INVALID_RESPONSE),
    ("404 where it means nothing", bad.HTML_404, 5, ErrorType.INVALID_RESPONSE),
    ("204", status(204, b""), 5, ErrorType.INVALID_RESPONSE),
    ("redirects to another host", bad.OFF_HOST, 5, ErrorType.INVALID_RESPONSE),
    ("400", status(400), 5, ErrorType.INVALID_ARGS),
    ("414", status(414), 5, ErrorType.INVALID_ARGS),
    ("401", status(401), 5, ErrorType.NOT_PERMITTED),
    ("403", status(403), 5, ErrorType.NOT_PERMITTED),
]


@pytest.mark.parametrize(
    ("behaviour", "seconds", "expected"), [case[1:] for case in FAILURES], ids=[c[0] for c in FAILURES]
)
def test_every_misbehaviour_has_its_error_type(http, behaviour, seconds, expected):
    # the hanging and dripping ones go on until the test ends: only the deadline brings the call back
    with Misbehaving(behaviour) as server:
        assert error_of(http, server.url, seconds).error_type is expected


def test_a_refused_connection_is_service_unavailable(http):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert error_of(http, f"http://127.0.0.1:{port}").error_type is ErrorType.SERVICE_UNAVAILABLE


def test_a_host_that_does_not_exist_is_service_unavailable(http):
    assert error_of(http, "http://no-such-host.invalid").error_type is ErrorType.SERVICE_UNAVAILABLE


def test_a_50_mb_body_is_not_read_to_its_end(http):
    with Misbehaving(bad.endless) as server:
        error_of(http, server.url)
        assert server.sent < 25_000_000


@pytest.mark.parametrize("first", [status(500), status(503), bad.half, status(429)], ids=["500", "503", "half", "429"])
def test_what_a_moment_may_mend_is_tried_again(http, first):
    with Misbehaving(first, OK) as server:
        assert get(http, server.url).data == 1
        assert server.count == 2


def test_retries_are_bounded(http):
    with Misbehaving(status(500)) as server:
        error_of(http, server.url)
        assert server.count == ATTEMPTS


@pytest.mark.parametrize(
    "behaviour", [status(400), status(403), bad.HTML, bad.endless], ids=["400", "403", "html", "big"]
)
def test_what_another_try_cannot_mend_is_not_tried_again(http, behaviour):
    with Misbehaving(behaviour, OK) as server:
        error_of(http, server.url)
        assert server.count == 1


def test_retry_after_is_obeyed(http):
    start = time.monotonic()
    with Misbehaving(status(429, Retry_After="1"), OK) as server:
        assert get(http, server.url).data == 1
    assert time.monotonic() - start >= 1


def test_a_retry_after_beyond_the_deadline_is_not_waited_for(http):
    with Misbehaving(status(429, Retry_After="60"), OK) as server:
        assert error_of(http, server.url, 20).error_type is ErrorType.RATE_LIMIT
        assert server.count == 1


def test_a_redirect_is_not_followed(http):
    with Misbehaving(status(301, b"", Location="/elsewhere"), OK) as server:
        assert error_of(http, server.url).error_type is ErrorType.INVALID_RESPONSE
        assert server.count == 1


def test_a_404_may_be_an_answer(http):
    with Misbehaving(status(404, b"none")) as server:
        found = http.at(server.url).get("path", {}, parse, Deadline.after(5), missing=lambda body: body.decode())
        assert found.data == "none"


def test_the_user_agent_names_the_program(http):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        heard = {}

        def serve():
            connection, _ = listener.accept()
            with connection:
                heard["request"] = connection.recv(65536).decode()
                connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"answer": 1}')

        thread = threading.Thread(target=serve)
        thread.start()
        get(http, f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread.join()
    assert "User-Agent: docgemma/" in heard["request"]


def test_a_burst_goes_through_and_then_one_request_at_a_time(http):
    with Misbehaving(OK) as server:
        waits = []
        for _ in range(4):
            start = time.monotonic()
            get(http, server.url, per_second=4, burst=2)
            waits.append(time.monotonic() - start)
    assert max(waits[:2]) < 0.2 and sum(waits) >= 0.5


def test_a_quota_that_leaves_no_time_is_a_rate_limit_and_asks_nobody(http):
    with Misbehaving(OK) as server:
        manners = {"per_second": 0.01, "burst": 1}
        get(http, server.url, **manners)
        assert error_of(http, server.url, 1, **manners).error_type is ErrorType.RATE_LIMIT
        assert server.count == 1


def test_neither_errors_nor_logs_hold_the_query(http, caplog):
    caplog.set_level(logging.DEBUG)
    with Misbehaving(status(500, b"secret words, your key"), status(403, b"secret words")) as server:
        error = error_of(http, server.url)
    assert error.details == {"service": "Test API"}
    chain = [error]
    while chain[-1].__cause__ or chain[-1].__context__:
        chain.append(chain[-1].__cause__ or chain[-1].__context__)
    said = " ".join([caplog.text, *(f"{item} {item.args}" for item in chain)])
    for secret in ("secret", "words", "your key", "/path"):
        assert secret not in said


def test_calls_from_many_threads_share_one_client(http):
    with Misbehaving(OK) as server:
        results = []
        threads = [threading.Thread(target=lambda: results.append(get(http, server.url).data)) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [1] * 12


def test_a_closed_client_starts_again(http):
    with Misbehaving(OK) as server:
        get(http, server.url)
        http.close()
        http.close()
        assert get(http, server.url).data == 1


def _ask_in_child(http, url, answers):
    answers.put(get(http, url).data)


def test_a_forked_process_has_a_client_of_its_own(http):
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    with Misbehaving(OK) as server:
        get(http, server.url)
        child = context.Process(target=_ask_in_child, args=(http, server.url, answers))
        child.start()
        assert answers.get(timeout=30) == 1
        child.join()
    answers.close()


@pytest.mark.parametrize(
    "url", ["api.fda.gov", "ftp://api.fda.gov", "http://", "https://x:99999999", "", "http://[::1"]
)
def test_a_bad_base_url_names_its_setting(url):
    with pytest.raises(ConfigError, match="DOCGEMMA_TEST_URL"):
        service(url)


def test_answers_are_kept_and_errors_are_not(tmp_path):
    http = Services(cache=tmp_path / "cache")
    with Misbehaving(status(403), bad.WRONG_SHAPE, OK, status(403)) as server:
        assert error_of(http, server.url).error_type is ErrorType.NOT_PERMITTED
        assert error_of(http, server.url).error_type is ErrorType.INVALID_RESPONSE
        first, second = get(http, server.url), get(http, server.url)
        assert (first.data, second, server.count) == (1, first, 3)
    http.close()


def test_an_empty_answer_by_404_is_not_kept(tmp_path):
    http = Services(cache=tmp_path / "cache")
    with Misbehaving(status(404, b"none"), OK) as server:

        def ask():
            return http.at(server.url).get("path", {}, parse, Deadline.after(5), missing=lambda body: 0).data

        assert (ask(), ask()) == (0, 1)
    http.close()


def test_a_kept_answer_of_an_old_shape_is_fetched_anew(tmp_path):
    http = Services(cache=tmp_path / "cache")
    with Misbehaving(OK) as server:
        get(http, server.url)
        (file,) = (tmp_path / "cache").iterdir()
        file.write_bytes(gzip.compress(b'{"answer": "old"}'))
        assert get(http, server.url).data == 1
        assert server.count == 2
        assert gzip.decompress(file.read_bytes()) == b'{"answer": 1}'
    http.close()
