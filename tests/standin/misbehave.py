"""A real server on 127.0.0.1 that misbehaves in a chosen way on every request, one way after the other if told so."""

import gzip
import socketserver
import threading
from collections.abc import Callable, Iterator

Behaviour = Callable[["Misbehaving"], Iterator[bytes]]


class Misbehaving:
    """Serve `behaviours` in turn, one a request; the last one goes on. Use as a context manager.

    Attributes:
        url: the base URL; any path below it behaves the same.
        count: requests so far. `sent`: body bytes of the last one, as far as the client took them.
    """

    def __init__(self, *behaviours: Behaviour):
        self.behaviours, self.count, self.sent, self.stopped = behaviours, 0, 0, threading.Event()
        self._lock = threading.Lock()
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self._handler(), bind_and_activate=True)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "Misbehaving":
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def next(self) -> Behaviour:
        with self._lock:
            behaviour = self.behaviours[min(self.count, len(self.behaviours) - 1)]
            self.count, self.sent = self.count + 1, 0
            return behaviour

    def _handler(self):
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                try:
                    while self.rfile.readline() not in (b"\r\n", b""):
                        pass
                    for piece in outer.next()(outer):
                        self.wfile.write(piece)
                        outer.sent += len(piece)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client had enough

        return Handler


def status(code: int, body: bytes = b"{}", **headers: str) -> Behaviour:
    def behave(server: Misbehaving) -> Iterator[bytes]:
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        head = "\r\n".join([f"HTTP/1.1 {code} X", f"Content-Length: {len(body)}", "Connection: close", *lines])
        yield head.encode() + b"\r\n\r\n" + body

    return behave


def hang(server: Misbehaving) -> Iterator[bytes]:
    server.stopped.wait(30)
    yield b""


def drip_body(server: Misbehaving) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
    while not server.stopped.wait(0.02):
        yield b" "


def drip_headers(server: Misbehaving) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    while not server.stopped.wait(0.02):
        yield b"X-Drip: 1\r\n"


def half(server: Misbehaving) -> Iterator[bytes]:
    yield b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"results": ['


def nothing(server: Misbehaving) -> Iterator[bytes]:
    yield b""


def endless(server: Misbehaving) -> Iterator[bytes]:
    """50 MB without a declared length."""
    yield b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    for _ in range(50):
        yield b" " * 1_000_000


def declared_big(server: Misbehaving) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n"
    for _ in range(50):
        yield b" " * 1_000_000


def bomb(server: Misbehaving) -> Iterator[bytes]:
    """50 MB packed into 50 kB."""
    body = gzip.compress(b" " * 50_000_000, 6)
    yield f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


HTML = status(200, b"<!DOCTYPE html><html><body>Down for maintenance</body></html>", Content_Type="text/html")
BROKEN_JSON = status(200, b'{"results": [{"set_id": ')
WRONG_SHAPE = status(200, b'{"results": "many", "studies": 3, "resultList": []}')
A_LIST = status(200, b"[1, 2]")
DEEP_JSON = status(200, b"[" * 200_000)
BAD_GZIP = status(200, b"not gzip at all", Content_Encoding="gzip")
NOT_UTF8 = status(200, b'{"results": "\xff\xfe"}')
HTML_404 = status(404, b"<html>Not here</html>", Content_Type="text/html")
OFF_HOST = status(302, b"", Location="http://example.invalid/elsewhere")
