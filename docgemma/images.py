"""Reading an attached image: PNG, JPEG or DICOM, checked before it is decoded. Never reads who the patient is.

DICOM: the middle frame, through the modality and VOI lookup (windowing), MONOCHROME1 inverted, as 8-bit RGB.
"""

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docgemma.errors import UsageError

if TYPE_CHECKING:  # these take longer to import than a question without an image has time
    import numpy as np
    from PIL import Image
    from pydicom import Dataset

    Pixels = np.ndarray[Any, Any]

MAX_BYTES = 50_000_000
MAX_PIXELS = 40_000_000
KINDS = "Attach a PNG, JPEG or DICOM file."

MODALITY_NAMES = {  # DICOM (0008,0060)
    "CR": "computed radiography", "DX": "digital radiography", "CT": "computed tomography",
    "MR": "magnetic resonance imaging", "US": "ultrasound", "MG": "mammography", "XA": "X-ray angiography",
    "RF": "fluoroscopy", "NM": "nuclear medicine", "PT": "positron emission tomography", "SM": "slide microscopy",
    "GM": "microscopy", "OP": "ophthalmic photography", "OPT": "ophthalmic tomography",
    "XC": "external-camera photography", "ES": "endoscopy",
}  # fmt: skip
CODE = re.compile(r"[A-Z0-9_ ]{1,16}")  # a DICOM code string; anything else could be free text


def load_image(path: str | Path) -> "tuple[Image.Image, dict[str, Any]]":
    """The picture and what its header tells.

    Returns:
        An RGB image, and `format` (PNG, JPEG, DICOM), `width`, `height`, `frames`; for DICOM also `modality`
        ("CR"), `modality_name`, `body_part`, `view`, "" where the header does not say. No identifying element is read.

    Raises:
        UsageError: missing, empty, no image, above 50 MB or 40 megapixels, truncated. The message does not repeat the
            file's name, which may hold a patient's.
    """
    path = Path(path)
    _check_file(path)
    try:
        return _load_dicom(path) if _is_dicom(path) else _load_picture(path)
    except OSError as error:
        raise UsageError("The image file cannot be read.", hint=f"It may be damaged. {KINDS}") from error


def read_header(path: str | Path) -> dict[str, Any]:
    """What the header alone tells; pixels are not decoded. Keys and errors as for `load_image`."""
    path = Path(path)
    _check_file(path)
    if _is_dicom(path):
        return _dicom_header(_dicom(path, stop_before_pixels=True))
    with _open_picture(path) as picture:
        return _picture_header(picture)


def describe_header(header: dict[str, Any]) -> str:
    """One sentence for a clinician."""
    what = f"a {header['format']} image"
    if name := header.get("modality_name"):
        what = f"{name} ({header['modality']})"
    part = f" of the {header['body_part'].lower()}" if header.get("body_part") else ""
    view = f", {header['view']} view" if header.get("view") else ""
    frames = f", {header['frames']} frames" if header["frames"] > 1 else ""
    return f"The file is {what}{part}{view}, {header['width']} x {header['height']} pixels{frames}."


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise UsageError("The image file was not found.", hint="Check the path.")
    size = path.stat().st_size
    if size == 0:
        raise UsageError("The image file is empty.", hint=KINDS)
    if size > MAX_BYTES:
        raise UsageError(f"The image file is too large ({size / 1e6:.0f} MB).", hint="The limit is 50 MB.")


def _check_pixels(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise UsageError(f"The image is too large ({width} x {height} pixels).", hint="The limit is 40 megapixels.")


def _is_dicom(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(132)[128:] == b"DICM"


def _open_picture(path: Path) -> "Image.Image":
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is lower
            picture = Image.open(path, formats=["PNG", "JPEG"])
    except Image.DecompressionBombError as error:
        raise UsageError("The image is too large.", hint="The limit is 40 megapixels.") from error
    except UnidentifiedImageError as error:
        raise UsageError("The file is not an image that can be read.", hint=KINDS) from error
    try:
        _check_pixels(*picture.size)
    except UsageError:
        picture.close()
        raise
    return picture


def _load_picture(path: Path) -> "tuple[Image.Image, dict[str, Any]]":
    from PIL import ImageOps

    with _open_picture(path) as picture:
        header = _picture_header(picture)
        try:
            picture.load()
        except (OSError, SyntaxError, ValueError, EOFError) as error:
            raise UsageError("The image file is truncated or damaged.", hint="Attach it again.") from error
        upright = ImageOps.exif_transpose(picture)
        if upright.mode.startswith("I"):  # 16 bits a pixel: RGB conversion would clip it to white
            import numpy as np

            return _to_rgb(_stretch(np.asarray(upright, dtype=np.float64))), header
        return upright.convert("RGB"), header


def _picture_header(picture: "Image.Image") -> dict[str, Any]:
    return {"format": picture.format, "width": picture.width, "height": picture.height, "frames": 1}


def _dicom(path: Path, stop_before_pixels: bool) -> "Dataset":
    import pydicom
    from pydicom.errors import InvalidDicomError

    try:
        return pydicom.dcmread(path, stop_before_pixels=stop_before_pixels)
    except (InvalidDicomError, EOFError, ValueError, KeyError, AttributeError) as error:
        raise UsageError("The DICOM file is truncated or damaged.", hint="Export it again.") from error


def _dicom_header(dataset: "Dataset") -> dict[str, Any]:
    width, height = int(dataset.get("Columns") or 0), int(dataset.get("Rows") or 0)
    if not width or not height:
        raise UsageError("The DICOM file holds no image.", hint="Attach an image, not a report or a waveform.")
    _check_pixels(width, height)
    modality = _code(dataset, "Modality")
    return {
        "format": "DICOM",
        "width": width,
        "height": height,
        "frames": int(dataset.get("NumberOfFrames") or 1),
        "modality": modality,
        "modality_name": MODALITY_NAMES.get(modality, ""),
        "body_part": _code(dataset, "BodyPartExamined"),
        "view": _code(dataset, "ViewPosition"),
    }


def _code(dataset: "Dataset", keyword: str) -> str:
    value = str(dataset.get(keyword) or "").strip()
    return value if CODE.fullmatch(value) else ""


def _load_dicom(path: Path) -> "tuple[Image.Image, dict[str, Any]]":
    from pydicom.pixels.utils import pixel_array

    dataset = _dicom(path, stop_before_pixels=False)
    header = _dicom_header(dataset)
    try:
        pixels = pixel_array(dataset, index=header["frames"] // 2 if header["frames"] > 1 else 0)
    except NotImplementedError as error:
        raise UsageError("The DICOM file's compression cannot be decoded.", hint="Export it uncompressed.") from error
    except (AttributeError, ValueError, RuntimeError, KeyError, EOFError) as error:
        raise UsageError("The DICOM file is truncated or damaged.", hint="Export it again.") from error
    if pixels.ndim == 3:  # colour; already RGB
        return _to_rgb(_stretch(pixels, 0, 255) if pixels.dtype == "uint8" else _stretch(pixels)), header
    return _to_rgb(_window(pixels, dataset)), header


def _window(pixels: "Pixels", dataset: "Dataset") -> "Pixels":
    """(H, W) stored values to (H, W) uint8 as a radiologist would see them."""
    from pydicom.pixels.processing import apply_modality_lut, apply_voi_lut

    values = apply_voi_lut(apply_modality_lut(pixels, dataset), dataset)
    shown = _stretch(values, *_voi_range(dataset))
    return 255 - shown if dataset.get("PhotometricInterpretation") == "MONOCHROME1" else shown


def _voi_range(dataset: "Dataset") -> tuple[float | None, float | None]:
    """What black and white are after the VOI step; (None, None) where the header does not say."""
    import numpy as np
    from pydicom.pixels.processing import apply_windowing

    if "VOILUTSequence" in dataset:
        return 0.0, float(2 ** dataset.VOILUTSequence[0].LUTDescriptor[2] - 1)
    if "WindowCenter" in dataset and "WindowWidth" in dataset:
        low, high = apply_windowing(np.array([-1e9, 1e9]), dataset)
        return float(low), float(high)
    return None, None


def _stretch(values: "Pixels", low: float | None = None, high: float | None = None) -> "Pixels":
    """To uint8, `low` becoming 0 and `high` 255; without them the extremes."""
    low = float(values.min()) if low is None else low
    high = float(values.max()) if high is None else high
    scaled = (values.astype("float64") - low) / max(high - low, 1e-9)
    return (scaled.clip(0, 1) * 255).round().astype("uint8")


def _to_rgb(pixels: "Pixels") -> "Image.Image":
    from PIL import Image

    return Image.fromarray(pixels).convert("RGB")
