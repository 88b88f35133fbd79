"""Images as text for the wire."""

import base64
import io

from PIL.Image import Image


def encode_png(image: Image) -> str:
    """An image of any mode as base64 of an RGB PNG."""
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, format="PNG")
    return base64.b64encode(buffer.getvalue()).decode("ascii")
