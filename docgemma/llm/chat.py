"""Chat messages as all back ends take them.

Text inside a turn is data: a control token written into it ("<|im_end|>") is broken up, so that a question or a tool's
result cannot close its turn and open another.
"""

import base64
import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from docgemma.llm.base import Prompt

if TYPE_CHECKING:
    from PIL.Image import Image

# every control token of the models in use: <bos>, <unused94>, <|im_end|>, </s>, [INST]; also a few harmless words
CONTROL_TOKEN = re.compile(r"<[^<>\s]+>|\[/?[A-Z_]+\]")


def as_data(text: str) -> str:
    """Text in which no control token stands any more: a space after its first character."""
    return CONTROL_TOKEN.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)


def messages(prompt: Prompt, show: Callable[["Image"], dict[str, Any]]) -> list[dict[str, Any]]:
    """The system's and the user's turn; each image stands before the text, as `show` makes it."""
    user: Any = as_data(prompt.user)
    if prompt.images:
        shown = [[show(image)] for image in prompt.images]
        if len(shown) > 1:  # slices are numbered as in MedGemma 1.5's CT notebook
            shown = [[*one, {"type": "text", "text": f"SLICE {number}"}] for number, one in enumerate(shown, 1)]
        user = [*(part for one in shown for part in one), {"type": "text", "text": user}]
    system = [{"role": "system", "content": as_data(prompt.system)}] if prompt.system else []
    return [*system, {"role": "user", "content": user}]


def openai_messages(prompt: Prompt) -> list[dict[str, Any]]:
    """`messages` as OpenAI-compatible servers take them; an opened assistant's turn is a last message to go on with."""
    opened = [{"role": "assistant", "content": prompt.prefix}] if prompt.prefix else []
    return [*messages(prompt, data_uri), *opened]


def data_uri(image: "Image") -> dict[str, Any]:
    """An image of any mode as an RGB PNG in a data URI."""
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, format="PNG")
    png = base64.b64encode(buffer.getvalue()).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}}
