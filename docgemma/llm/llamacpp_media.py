"""Prompts with images for llama.cpp: its in-process call takes text only, so they go to its loopback listener."""

import json
from collections.abc import Generator
from typing import Any

import httpx
from PIL.Image import Image

from docgemma.errors import ModelError
from docgemma.llm.images import encode_png

TIMEOUT = httpx.Timeout(None, connect=5.0)  # seconds; on a CPU an image alone may take minutes


class MediaClient:
    """The native completion endpoint of one in-process server, in the words of its in-process call.

    Args:
        address: of the server's loopback listener.
        key: its bearer token.
    """

    def __init__(self, address: str, key: str):
        self._http = httpx.Client(
            base_url=address,
            headers={"Authorization": f"Bearer {key}"},
            timeout=TIMEOUT,
            trust_env=False,  # a proxy set for the outside world must not see a loopback call
            limits=httpx.Limits(max_keepalive_connections=0),  # llama.cpp drops idle ones, at times just as we write
        )
        try:
            self.mark = self._http.get("/props").raise_for_status().json()["media_marker"]
        except (httpx.HTTPError, KeyError, ValueError) as error:
            self.close()
            raise ModelError("This version of llama.cpp does not take images.", hint="Update xllamacpp.") from error

    def stream(
        self, body: dict[str, Any], text: str, images: tuple[Image, ...]
    ) -> Generator[dict[str, Any], None, None]:
        """Chunks as `handle_completions` makes them. `text` holds `mark` once for each image, in order."""
        prompt = {"prompt_string": text, "multimodal_data": [encode_png(image) for image in images]}
        try:
            with self._http.stream("POST", "/completion", json={**body, "prompt": prompt}) as response:
                if response.status_code != 200:
                    yield json.loads(response.read())
                    return
                for line in response.iter_lines():
                    kind, found, data = line.partition(":")
                    if found and kind in ("data", "error"):
                        yield _chunk(json.loads(data))
        except (httpx.HTTPError, ValueError) as error:
            raise ModelError("llama.cpp broke off its answer.", hint="Try again.", retryable=True) from error

    def close(self) -> None:
        self._http.close()


def _chunk(event: dict[str, Any]) -> dict[str, Any]:
    if "content" not in event:
        return event if "error" in event else {"error": event}
    finish = None
    if event.get("stop"):
        finish = "length" if event.get("stop_type") == "limit" else "stop"
    return {
        "choices": [{"text": event["content"], "finish_reason": finish}],
        "usage": {
            "prompt_tokens": event.get("tokens_evaluated", 0),
            "completion_tokens": event.get("tokens_predicted", 0),
        },
        "timings": event.get("timings", {}),
    }
