"""A local server that speaks Gemini's REST protocol and plays the turns that a test wrote."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SIGNATURE = "c2lnbmF0dXJlLW9mLXRoZS10dXJu+/8="  # standard base64, with the two signs that URLs write otherwise


def calls(*asked: tuple[str, Any], text: str = "", signature: str = SIGNATURE) -> dict[str, Any]:
    """A turn with tool calls, all in parallel; the signature stands on the first, as the API does it."""
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    for number, (name, args) in enumerate(asked):
        call: dict[str, Any] = {"functionCall": {"id": f"call-{number}", "name": name, "args": args}}
        parts.append(call if number else call | {"thoughtSignature": signature})
    return turn(parts)


def turn(parts: list[dict[str, Any]], reason: str = "STOP") -> dict[str, Any]:
    candidate: dict[str, Any] = {"finishReason": reason}
    if parts:
        candidate["content"] = {"role": "model", "parts": parts}
    used = {"promptTokenCount": 1000, "candidatesTokenCount": 40, "thoughtsTokenCount": 60, "totalTokenCount": 1100}
    return {"candidates": [candidate], "usageMetadata": used}


DONE = turn([{"text": "Nothing more is worth a call."}])
REFUSAL = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 9}}


def failure(status: int, name: str) -> tuple[int, dict[str, Any]]:
    return status, {"error": {"code": status, "message": "the request said: secret words", "status": name}}


class Server(ThreadingHTTPServer):
    """`script`: turns, each a body, a (status, body), or a number of seconds to sleep before it hangs up."""

    daemon_threads = True
    script: list[Any]
    requests: list[dict[str, Any]]
    seen: list[tuple[str, dict[str, str]]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        self.server.seen.append((self.path, dict(self.headers)))
        played = self.server.script.pop(0) if self.server.script else DONE
        if isinstance(played, int | float):
            time.sleep(played)
            return
        status, answer = played if isinstance(played, tuple) else (200, played)
        wrong = missing_signature(body)
        if wrong and status == 200:
            status, answer = failure(400, "INVALID_ARGUMENT")
        raw = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def missing_signature(body: dict[str, Any]) -> bool:
    """Gemini 3 refuses a turn of its own that comes back changed, and answers that are not all there."""
    turns = body["contents"]
    for at, said in enumerate(turns):
        asked = [part["functionCall"] for part in said["parts"] if "functionCall" in part]
        if not asked:
            continue
        signed = [part.get("thoughtSignature") for part in said["parts"] if "functionCall" in part]
        told = [part["functionResponse"] for part in turns[at + 1]["parts"]]
        if not signed[0] or [(one["name"], one["id"]) for one in asked] != [(one["name"], one["id"]) for one in told]:
            return True
    return False


@contextmanager
def playing(*script: Any) -> Iterator[tuple[str, Server]]:
    server = Server(("127.0.0.1", 0), Handler)
    server.script, server.requests, server.seen = list(script), [], []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server
    finally:
        server.shutdown()
        server.server_close()
