"""An image that came with an MCP call: bytes in base64, or, where client and server share a disk, a path."""

import base64
import binascii
import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from docgemma.errors import ErrorType, ToolError
from docgemma.images import MAX_BYTES
from docgemma.state import ImageRef
from docgemma.tools.mcp_wire import IMAGE_DATA, IMAGE_PATH, MAX_BASE64


@contextmanager
def received_image(args: dict[str, Any], *, paths: bool) -> Iterator[ImageRef | None]:
    """The image of a call as a file, for as long as the call lasts; None where none was sent.

    Raises:
        ToolError: `invalid_args`, with a `reason` for the clinician.
    """
    data, path = args.get(IMAGE_DATA), args.get(IMAGE_PATH)
    if path and not paths:
        raise _unusable("Over a network an image is sent as image_base64, not as a path.")
    if data and path:
        raise _unusable("Send the image either as image_base64 or as image_path.")
    if path:
        yield _image_ref(Path(str(path)))
    elif data:
        with tempfile.TemporaryDirectory(prefix="docgemma-") as folder:
            file = Path(folder) / "image"
            file.write_bytes(_decoded(data))
            yield _image_ref(file)
    else:
        yield None


def _decoded(data: Any) -> bytes:
    if not isinstance(data, str) or len(data) > MAX_BASE64:
        raise _unusable(f"The image is too large; the limit is {MAX_BASE64 * 3 // 4 // 1_000_000} MB.")
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        raise _unusable("image_base64 is not base64.") from None


def _image_ref(path: Path) -> ImageRef:
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            raise _unusable(f"There is no image file at that path, or it is above {MAX_BYTES // 1_000_000} MB.")
        content = path.read_bytes()
    except (OSError, ValueError):
        raise _unusable("The image file cannot be read.") from None
    return ImageRef(path=str(path), media_type=_media_type(content), sha256=hashlib.sha256(content).hexdigest())


def _media_type(content: bytes) -> str:
    if content[128:132] == b"DICM":
        return "application/dicom"
    return "image/png" if content.startswith(b"\x89PNG") else "image/jpeg"


def _unusable(reason: str) -> ToolError:
    return ToolError(ErrorType.INVALID_ARGS, reason, reason=reason)


def without_image(args: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in args.items() if key not in (IMAGE_DATA, IMAGE_PATH)}
