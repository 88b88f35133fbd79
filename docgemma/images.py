"""Reading an attached image: PNG, JPEG, DICOM or a ZIP of one DICOM series, checked before it is decoded. Never reads
who the patient is.

DICOM: the middle frame, through the modality and VOI lookup (windowing), MONOCHROME1 inverted, as 8-bit RGB. A CT for a
model: several slices, each in three windows (`CT_WINDOWS`).
"""

import hashlib
import io
import re
import shutil
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docgemma.errors import StoreError, UsageError
from docgemma.paths import private_file, private_folder
from docgemma.state import ImageRef
from docgemma.text.words import clinical

if TYPE_CHECKING:  # these take longer to import than a question without an image has time
    import numpy as np
    from PIL import Image
    from pydicom import Dataset

    Pixels = np.ndarray[Any, Any]

MAX_BYTES = 50_000_000
MAX_PIXELS = 40_000_000
MAX_UNPACKED = 4 * MAX_BYTES  # of a ZIP file
KINDS = "Attach a PNG, JPEG or DICOM file, or a ZIP file of a DICOM series."
MAX_FRAMES = 4096
# Hounsfield units in red, green and blue, as MedGemma 1.5 was trained on CT. Source: the notebook
# high_dimensional_ct_hugging_face of github.com/google-health/medgemma, which shows up to 85 slices on a larger GPU
CT_WINDOWS = ((-1024, 1024), (-135, 215), (0, 80))
MAX_SLICES = 8  # 256 tokens each, of the 8,192 that fit on a T4

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
    with _opened(Path(path)) as (opened, header):
        decode = _decode_dicom if header["format"] == "DICOM" else _decode_picture
        return decode(opened), header


def load_slices(path: str | Path) -> "tuple[tuple[Image.Image, ...], dict[str, Any]]":
    """What a model looks at: of a CT at most `MAX_SLICES` slices, evenly spread, each in three windows; of anything
    else the picture of `load_image`. The header has `slices`, how many these are. Errors as for `load_image`.
    """
    with _opened(Path(path)) as (opened, header):
        if header["format"] != "DICOM":
            return (_decode_picture(opened),), header | {"slices": 1}
        places = _places(opened)
        if header["modality"] != "CT" or any(_rescale(*place) is None for place in places):
            return (_decode_dicom(opened),), header | {"slices": 1}
        last, count = len(places) - 1, min(len(places), MAX_SLICES)
        chosen = places if count == len(places) else [places[round(i / count * last)] for i in range(1, count + 1)]
        return tuple(_three_windows(*place) for place in chosen), header | {"slices": count}


def read_header(path: str | Path) -> dict[str, Any]:
    """What the header alone tells; pixels are not decoded. Keys and errors as for `load_image`."""
    with _opened(Path(path), header_only=True) as (_, header):
        return header


def keep_image(path: str | Path, folder: Path) -> ImageRef:
    """Check an image now and keep a copy in `folder`, so that a resumed turn still has it.

    Raises:
        UsageError: as `load_image`.
        StoreError: it cannot be kept.
    """
    load_image(path)
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    kept = folder / f"{digest}{Path(path).suffix.lower()}"
    try:
        private_folder(folder)
        shutil.copyfile(path, private_file(kept))
    except OSError as error:
        raise StoreError(f"The image cannot be kept: {error.strerror}.", hint="Set DOCGEMMA_HOME.") from error
    return ImageRef(path=str(kept))


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


@contextmanager
def _opened(path: Path, header_only: bool = False) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A PIL image, or the pydicom datasets of one series in order, sizes checked; its header. Errors: `load_image`."""
    _check_file(path)
    from PIL import Image, UnidentifiedImageError

    try:
        if _is_dicom(path) or _is_zip(path):
            series = _read_series(path, header_only)
            yield series, _dicom_header(series)
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is lower
            picture = Image.open(path, formats=["PNG", "JPEG"])
        with picture:
            _check_pixels(*picture.size)
            yield picture, {"format": picture.format, "width": picture.width, "height": picture.height, "frames": 1}
    except Image.DecompressionBombError as error:
        raise UsageError("The image is too large.", hint="The limit is 40 megapixels.") from error
    except UnidentifiedImageError as error:
        raise UsageError("The file is not an image that can be read.", hint=KINDS) from error
    except NotImplementedError as error:
        raise UsageError("The DICOM file's compression cannot be decoded.", hint="Export it uncompressed.") from error
    except (
        OSError, EOFError, SyntaxError, ValueError, RuntimeError, LookupError, AttributeError, TypeError,
        zipfile.BadZipFile, zlib.error,
    ) as error:  # fmt: skip
        raise UsageError("The image file is truncated or damaged.", hint="Export or attach it again.") from error


def _check_pixels(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise UsageError(f"The image is too large ({width} x {height} pixels).", hint="The limit is 40 megapixels.")


def _is_dicom(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(132)[128:] == b"DICM"


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _read_series(path: Path, header_only: bool) -> "list[Dataset]":
    """One dataset of a DICOM file; of a ZIP file the series with the most images, in order of their numbers."""
    import pydicom

    if _is_dicom(path):
        return [pydicom.dcmread(path, stop_before_pixels=header_only)]
    found: dict[str, list[Dataset]] = {}
    with zipfile.ZipFile(path) as packed:
        if sum(member.file_size for member in packed.infolist()) > MAX_UNPACKED:
            raise UsageError("The ZIP file is too large unpacked.", hint=f"At most {MAX_UNPACKED / 1e6:.0f} MB.")
        for member in packed.infolist():
            with packed.open(member) as file:
                if file.read(132)[128:] != b"DICM":
                    continue
            with packed.open(member) as file:
                dataset = pydicom.dcmread(io.BytesIO(file.read()), stop_before_pixels=header_only)
            if dataset.get("Rows"):
                found.setdefault(str(dataset.get("SeriesInstanceUID")), []).append(dataset)
    if not found:
        raise UsageError("The ZIP file holds no DICOM image.", hint=KINDS)
    most = max(found.values(), key=lambda series: len(series))
    return sorted(most, key=lambda dataset: int(dataset.get("InstanceNumber") or 0))


def _dicom_header(series: "list[Dataset]") -> dict[str, Any]:
    dataset = series[len(series) // 2]
    for one in series:
        _check_pixels(int(one.get("Columns") or 0), int(one.get("Rows") or 0))
    width, height = int(dataset.get("Columns") or 0), int(dataset.get("Rows") or 0)
    if not width or not height:
        raise UsageError("The DICOM file holds no image.", hint="Attach an image, not a report or a waveform.")
    codes = [str(dataset.get(keyword) or "").strip() for keyword in ("Modality", "BodyPartExamined", "ViewPosition")]
    modality, body_part, view = (code if CODE.fullmatch(code) else "" for code in codes)
    return {
        "format": "DICOM", "width": width, "height": height, "frames": len(_places(series)),
        "modality": modality, "modality_name": clinical("imaging")["modalities"].get(modality, ""),
        "body_part": body_part, "view": view,
    }  # fmt: skip


def _decode_picture(picture: "Image.Image") -> "Image.Image":
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(picture)
    if upright.mode.startswith("I"):  # 16 bits a pixel: RGB conversion would clip it to white
        import numpy as np

        return _to_rgb(np.asarray(upright, dtype=np.float64))
    return upright.convert("RGB")


def _places(series: "list[Dataset]") -> "list[tuple[Dataset, int]]":
    """Every slice as its dataset and the number of its frame there."""
    counts = [min(int(dataset.get("NumberOfFrames") or 1), MAX_FRAMES) for dataset in series]
    return [(dataset, frame) for dataset, count in zip(series, counts, strict=True) for frame in range(count)]


def _rescale(dataset: "Dataset", frame: int) -> tuple[float, float] | None:
    """Slope and intercept from stored values to Hounsfield units; None where the header does not say."""
    where = [dataset]
    for groups, number in (("PerFrameFunctionalGroupsSequence", frame), ("SharedFunctionalGroupsSequence", 0)):
        if groups in dataset:  # an enhanced CT keeps them there
            where += dataset[groups].value[number].get("PixelValueTransformationSequence") or []
    return next(
        ((float(one.RescaleSlope), float(one.RescaleIntercept)) for one in where if "RescaleSlope" in one), None
    )


def _three_windows(dataset: "Dataset", frame: int) -> "Image.Image":
    """One slice with a window of `CT_WINDOWS` in each of its colours."""
    import numpy as np
    from PIL import Image
    from pydicom.pixels.utils import pixel_array

    slope, intercept = _rescale(dataset, frame) or (1.0, 0.0)
    hounsfield = pixel_array(dataset, index=frame).astype("float64") * slope + intercept
    shown = [(hounsfield.clip(low, high) - low) / (high - low) * 255 for low, high in CT_WINDOWS]
    return Image.fromarray(np.stack(shown, axis=-1).round().astype("uint8"))


def _decode_dicom(series: "list[Dataset]") -> "Image.Image":
    """The middle slice as a radiologist would see it."""
    from pydicom.pixels.processing import apply_modality_lut, apply_voi_lut
    from pydicom.pixels.utils import pixel_array

    places = _places(series)
    dataset, frame = places[len(places) // 2]
    pixels = pixel_array(dataset, index=frame)
    if pixels.ndim == 3:  # colour; already RGB
        return _to_rgb(pixels, 0, 255) if pixels.dtype == "uint8" else _to_rgb(pixels)
    low, high = _voi_range(dataset)
    values = apply_voi_lut(apply_modality_lut(pixels, dataset), dataset)
    return _to_rgb(values, low, high, inverted=dataset.get("PhotometricInterpretation") == "MONOCHROME1")


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


def _to_rgb(
    values: "Pixels", low: float | None = None, high: float | None = None, inverted: bool = False
) -> "Image.Image":
    """`values`: (H, W) or (H, W, 3). `low` becomes 0 and `high` 255; without them the extremes."""
    from PIL import Image

    low = float(values.min()) if low is None else low
    high = float(values.max()) if high is None else high
    scaled = ((values.astype("float64") - low) / max(high - low, 1e-9)).clip(0, 1)
    shown = ((1 - scaled if inverted else scaled) * 255).round().astype("uint8")
    return Image.fromarray(shown).convert("RGB")
