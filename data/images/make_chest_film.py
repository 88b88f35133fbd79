"""Draw `chest_synthetic.dcm`: a chest film that is nobody's, by arithmetic: `python data/images/make_chest_film.py`.

Soft ellipses for body, lungs, heart and diaphragm, arcs for ribs. It shows what the program does with an X-ray. It is
no picture of a person, says so on itself, and what a model reads off it means nothing.
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import DeflatedExplicitVRLittleEndian, generate_uid

OUT = Path(__file__).with_name("chest_synthetic.dcm")
SIDE = 512
DIGITAL_X_RAY = "1.2.840.10008.5.1.4.1.1.1.1"
WORDS = "SYNTHETIC - NO PATIENT"


def drawn() -> np.ndarray:
    """The film. Returns (512, 512) uint8, bright where a body would stop the rays."""
    y, x = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]

    def blob(cx: float, cy: float, rx: float, ry: float, soft: float = 0.12) -> np.ndarray:
        return 1 / (1 + np.exp((np.hypot((x - cx) / rx, (y - cy) / ry) - 1) / soft))

    film = 0.75 * blob(0, 0.35, 0.95, 1.25, 0.04)
    lungs = np.maximum(blob(-0.42, 0.0, 0.3, 0.62, 0.09), blob(0.42, 0.0, 0.28, 0.62, 0.09))
    film -= 0.55 * lungs
    film += 0.2 * np.exp(-((x / 0.09) ** 2)) + 0.35 * blob(0.14, 0.3, 0.3, 0.32)
    for side in (-1, 1):  # ribs: arcs that fall outwards; collar bones
        for number in range(7):
            arc = -0.55 + 0.17 * number + 0.35 * (np.abs(x) - 0.45) ** 2 + 0.12 * np.abs(x)
            film += 0.09 * np.exp(-(((y - arc) / 0.025) ** 2)) * (side * x > 0.1) * blob(0, 0.1, 0.85, 0.9, 0.03)
        film += 0.16 * np.exp(-(((y + 0.62 - 0.15 * np.abs(x)) / 0.03) ** 2)) * (side * x > 0.08) * (side * x < 0.75)
    film = np.maximum(film, 0.8 * blob(-0.42, 0.95, 0.45, 0.4, 0.05) * (x < 0))
    film = np.maximum(film, 0.75 * blob(0.42, 1.0, 0.45, 0.4, 0.05) * (x > 0))
    picture = Image.fromarray((film.clip(0, 1) * 235).astype(np.uint8))
    ImageDraw.Draw(picture).text((12, 488), WORDS, fill=255, font=ImageFont.load_default(16))
    return np.asarray(picture)


def main() -> None:
    pixels = drawn()
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = DIGITAL_X_RAY
    meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=["docgemma", "chest_synthetic"])
    meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    film = FileDataset(str(OUT), {}, file_meta=meta, preamble=b"\0" * 128)
    film.SOPClassUID, film.SOPInstanceUID = DIGITAL_X_RAY, meta.MediaStorageSOPInstanceUID
    film.PatientName, film.PatientID, film.PatientIdentityRemoved = "SYNTHETIC", "SYNTHETIC", "YES"
    film.ImageComments = "Drawn by data/images/make_chest_film.py; no picture of a person."
    film.Modality, film.BodyPartExamined, film.ViewPosition = "DX", "CHEST", "PA"
    film.Rows, film.Columns = pixels.shape
    film.SamplesPerPixel, film.PhotometricInterpretation, film.PixelRepresentation = 1, "MONOCHROME2", 0
    film.BitsAllocated = film.BitsStored = 8
    film.HighBit, film.WindowCenter, film.WindowWidth = 7, 128, 256
    film.PixelData = pixels.tobytes()
    film.save_as(OUT, enforce_file_format=True)


if __name__ == "__main__":
    main()
