"""Reading PNG, JPEG and DICOM files that are good, broken, enormous or none at all."""

import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pydicom
import pytest
from PIL import Image
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

from docgemma.errors import UsageError
from docgemma.images import MAX_SLICES, MAX_UNPACKED, describe_header, load_image, load_slices, read_header

NAME = "DOE^JANE"  # never to be read


def dicom_file(path: Path, pixels: np.ndarray | None, **elements) -> Path:
    """A minimal valid DICOM file. pixels: (H, W) or (frames, H, W), uint16 or int16."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = CTImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data = FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128)
    data.PatientName, data.PatientID, data.StudyDate = NAME, "MRN12345", "20200101"
    data.Modality = "CT"
    if pixels is not None:
        data.Rows, data.Columns = pixels.shape[-2:]
        if pixels.ndim == 3:
            data.NumberOfFrames = pixels.shape[0]
        data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
        data.BitsAllocated = data.BitsStored = 16
        data.HighBit, data.PixelRepresentation = 15, int(pixels.dtype.kind == "i")
        data.PixelData = pixels.tobytes()
    for keyword, value in elements.items():
        setattr(data, keyword, value)
    data.save_as(path, enforce_file_format=True)
    return path


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds next to nothing: what a decompression bomb looks like from outside."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(b"\0" * 64))


@pytest.mark.parametrize(("suffix", "kind"), [(".png", "PNG"), (".jpg", "JPEG"), (".bin", "PNG")])
def test_a_picture_is_read_as_rgb_whatever_its_name(tmp_path, suffix, kind):
    path = tmp_path / f"x{suffix}"
    Image.new("L", (8, 6), 200).save(path, format=kind)
    image, header = load_image(path)
    assert (image.mode, image.size) == ("RGB", (8, 6))
    assert header == {"format": kind, "width": 8, "height": 6, "frames": 1} == read_header(path)
    assert describe_header(header) == f"The file is a {kind} image, 8 x 6 pixels."


@pytest.mark.parametrize("mode", ["1", "P", "RGBA", "LA", "CMYK", "I;16"])
def test_every_colour_mode_becomes_rgb(tmp_path, mode):
    path = tmp_path / ("x.jpg" if mode == "CMYK" else "x.png")
    Image.new(mode, (4, 4)).save(path)
    assert load_image(path)[0].mode == "RGB"


def test_sixteen_bits_a_pixel_are_scaled_and_not_clipped_to_white(tmp_path):
    Image.fromarray(np.array([[0, 30000, 60000]], dtype=np.uint16)).save(tmp_path / "x.png")
    image, _ = load_image(tmp_path / "x.png")
    assert np.asarray(image)[0, :, 0].tolist() == [0, 128, 255]


def test_a_photo_taken_sideways_is_turned_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (8, 4)).save(tmp_path / "x.jpg", exif=exif)
    assert load_image(tmp_path / "x.jpg")[0].size == (4, 8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "not found"), (b"", "empty"), (b"hello", "not an image"), (b"%PDF-1.7 not an image", "not an image"),
        (b"GIF89a" + b"\0" * 50, "not an image"), (png_header(20_000, 20_000), "too large"),
        (png_header(10_000, 10_000), "too large"), (png_header(6_400, 6_400), "too large"),
        (png_header(64, 64), "truncated"), (b"\0" * 128 + b"DICM", "no image"),
        (b"\0" * 128 + b"DICMgarbage that is no element", "no image|damaged"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["x.png", "x.dcm"])
def test_a_bad_file_gets_one_clear_line(tmp_path, content, message, name):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=message) as caught:
        load_image(path)
    assert caught.value.hint and "\n" not in caught.value.line()
    assert str(tmp_path) not in caught.value.line()


def test_a_folder_is_not_an_image(tmp_path):
    with pytest.raises(UsageError, match="not found"):
        load_image(tmp_path)


def test_a_file_above_fifty_megabytes_is_refused_unread(tmp_path):
    with (tmp_path / "x.png").open("wb") as file:
        file.truncate(50_000_001)
    with pytest.raises(UsageError, match="too large"):
        load_image(tmp_path / "x.png")


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_truncated_picture_is_refused(tmp_path, kind):
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "x", format=kind)
    whole = (tmp_path / "x").read_bytes()
    (tmp_path / "x").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match="truncated"):
        load_image(tmp_path / "x")


RAMP = np.arange(0, 4096, dtype=np.uint16).reshape(64, 64)


def test_dicom_windowing_decides_what_is_black_and_white(tmp_path):
    path = dicom_file(tmp_path / "x.dcm", RAMP, WindowCenter=1000, WindowWidth=200)
    shown = np.asarray(load_image(path)[0])[:, :, 0].ravel()
    assert shown[899] == 0 and shown[1101] == 255 and 120 <= shown[1000] <= 135


def test_the_window_holds_also_where_the_picture_does_not_fill_it(tmp_path):
    path = dicom_file(tmp_path / "x.dcm", np.full((4, 4), 1000, np.uint16), WindowCenter=1000, WindowWidth=200)
    assert 120 <= np.asarray(load_image(path)[0]).max() <= 135


def test_dicom_rescale_is_applied_before_the_window(tmp_path):
    path = dicom_file(
        tmp_path / "x.dcm", RAMP, RescaleSlope=1, RescaleIntercept=-1024, WindowCenter=40, WindowWidth=400
    )
    shown = np.asarray(load_image(path)[0])[:, :, 0].ravel()
    assert shown[1024 - 161] == 0 and shown[1024 + 241] == 255


def test_monochrome1_is_inverted(tmp_path):
    plain = dicom_file(tmp_path / "2.dcm", RAMP, PhotometricInterpretation="MONOCHROME2")
    inverted = dicom_file(tmp_path / "1.dcm", RAMP, PhotometricInterpretation="MONOCHROME1")
    first, second = (np.asarray(load_image(path)[0])[:, :, 0].astype(int) for path in (plain, inverted))
    assert (first + second == 255).all() and first[0, 0] == 0


def test_without_a_window_the_range_of_the_pixels_is_shown(tmp_path):
    shown = np.asarray(load_image(dicom_file(tmp_path / "x.dcm", RAMP[:2]))[0])
    assert (shown.min(), shown.max()) == (0, 255)


def test_of_many_frames_the_middle_one_is_shown(tmp_path):
    frames = np.zeros((5, 4, 4), np.uint16)
    frames[2, 0, 0] = 4000
    path = dicom_file(tmp_path / "x.dcm", frames, WindowCenter=2000, WindowWidth=4000)
    image, header = load_image(path)
    assert header["frames"] == 5 and np.asarray(image)[0, 0, 0] == 255
    assert "5 frames" in describe_header(header)


def test_the_header_tells_modality_and_part_and_never_who_it_is(tmp_path):
    path = dicom_file(tmp_path / "x.dcm", RAMP, Modality="DX", BodyPartExamined="CHEST", ViewPosition="PA",
                      StudyDescription=NAME)  # fmt: skip
    for header in (read_header(path), load_image(path)[1]):
        assert header["modality_name"] == "digital radiography" and header["view"] == "PA"
        sentence = describe_header(header)
        assert sentence == "The file is digital radiography (DX) of the chest, PA view, 64 x 64 pixels."
        assert not any(word in str(header) + sentence for word in (NAME, "MRN12345", "2020"))


@pytest.mark.parametrize("value", ["Jane Doe, 1970", "X" * 40, "chest; call 555"])
def test_free_text_in_a_code_element_is_not_passed_on(tmp_path, value):
    from pydicom import config

    with config.disable_value_validation():
        path = dicom_file(tmp_path / "x.dcm", RAMP, BodyPartExamined=value)
        assert read_header(path)["body_part"] == ""


def test_an_enormous_dicom_is_refused_before_it_is_decoded(tmp_path):
    path = dicom_file(tmp_path / "x.dcm", RAMP, Rows=20_000, Columns=20_000)
    with pytest.raises(UsageError, match="too large"):
        load_image(path)


def test_a_truncated_dicom_is_refused(tmp_path):
    path = dicom_file(tmp_path / "x.dcm", RAMP)
    path.write_bytes(path.read_bytes()[:-4000])
    with pytest.raises(UsageError, match="truncated or damaged"):
        load_image(path)


def test_a_dicom_without_pixels_is_refused(tmp_path):
    with pytest.raises(UsageError, match="holds no image"):
        load_image(dicom_file(tmp_path / "x.dcm", None))


def test_a_compression_that_cannot_be_decoded_says_so(tmp_path):
    path = dicom_file(tmp_path / "x.dcm", RAMP)
    data = pydicom.dcmread(path)
    data.PixelData = pydicom.encaps.encapsulate([b"\0" * 100])
    data["PixelData"].VR = "OB"
    data.file_meta.TransferSyntaxUID = "1.2.840.10008.1.2.4.101"  # MPEG-2
    data.save_as(path)
    with pytest.raises(UsageError, match=r"compression|damaged"):
        load_image(path)


HOUNSFIELD = {"RescaleSlope": 1, "RescaleIntercept": -1024}


def ct(path: Path, number: int = 1, series: str = "1.2.3", value: int | None = None, **elements) -> Path:
    """One slice of a synthetic CT; `value`: of every pixel, in Hounsfield units."""
    pixels = RAMP if value is None else np.full((8, 8), value + 1024, np.uint16)
    given = {**HOUNSFIELD, "InstanceNumber": number, "SeriesInstanceUID": series, **elements}
    return dicom_file(path, pixels, **given)


def packed(path: Path, *files: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.name)
    return path


def test_a_ct_is_shown_in_three_windows_as_medgemma_was_trained(tmp_path):
    """Red -1024 to 1024, green -135 to 215, blue 0 to 80 Hounsfield units."""
    (picture,), header = load_slices(ct(tmp_path / "x.dcm", WindowCenter=40, WindowWidth=400))
    shown = np.asarray(picture).reshape(-1, 3)
    units = {-1024: (0, 0, 0), -135: (111, 0, 0), 40: (132, 128, 128), 80: (137, 157, 255), 1024: (255, 255, 255)}
    for unit, colour in units.items():
        assert np.abs(shown[unit + 1024].astype(int) - colour).max() <= 1, unit
    assert header["slices"] == 1


def test_pydicoms_own_ct_is_read_so_too():
    from pydicom.data import get_testdata_file

    (picture,), _ = load_slices(get_testdata_file("CT_small.dcm", download=False))
    red, green, blue = np.moveaxis(np.asarray(picture).astype(int), -1, 0)
    assert picture.size == (128, 128) and not (red == green).all() and not (green == blue).all()
    grey = np.asarray(load_image(get_testdata_file("CT_small.dcm", download=False))[0])
    assert (grey[..., 0] == grey[..., 1]).all()  # what a person is shown stays grey


@pytest.mark.parametrize("modality", ["DX", "CR", "MR"])
def test_what_is_no_ct_is_looked_at_as_it_is_shown(tmp_path, modality):
    path = dicom_file(tmp_path / "x.dcm", RAMP, Modality=modality, WindowCenter=1000, WindowWidth=200)
    (picture,), header = load_slices(path)
    assert (np.asarray(picture) == np.asarray(load_image(path)[0])).all() and header["slices"] == 1


def test_a_ct_whose_header_does_not_tell_hounsfield_units_stays_grey(tmp_path):
    path = dicom_file(tmp_path / "x.dcm", RAMP)
    (picture,), _ = load_slices(path)
    assert (np.asarray(picture) == np.asarray(load_image(path)[0])).all()


def test_of_a_zipped_series_slices_are_taken_evenly_and_in_order(tmp_path):
    files = [ct(tmp_path / f"{number % 7}-{number}.dcm", number, value=4 * number) for number in range(1, 21)]
    files.append(ct(tmp_path / "scout.dcm", 1, "9.9.9", value=-1000))
    (tmp_path / "DICOMDIR.txt").write_text("an index")
    pictures, header = load_slices(packed(tmp_path / "x.zip", *files, tmp_path / "DICOMDIR.txt"))
    blue = [int(np.asarray(picture)[0, 0, 2]) for picture in pictures]
    assert header["frames"] == 20 and header["slices"] == len(pictures) == MAX_SLICES
    assert blue == sorted(blue) and blue[-1] == 255 and "20 frames" in describe_header(header)
    assert NAME not in str(header)


def test_of_a_multi_frame_ct_every_frame_has_its_own_scale(tmp_path):
    from pydicom.dataset import Dataset
    from pydicom.sequence import Sequence

    def group(intercept: int) -> Dataset:
        scale, frame = Dataset(), Dataset()
        scale.RescaleSlope, scale.RescaleIntercept = 1, intercept
        frame.PixelValueTransformationSequence = Sequence([scale])
        return frame

    groups = Sequence([group(-1000), group(-960), group(-920)])
    frames = np.full((3, 4, 4), 1000, np.uint16)
    pictures, header = load_slices(dicom_file(tmp_path / "x.dcm", frames, PerFrameFunctionalGroupsSequence=groups))
    assert [int(np.asarray(picture)[0, 0, 2]) for picture in pictures] == [0, 128, 255]
    assert header["slices"] == header["frames"] == 3


def test_a_zipped_series_is_answered_about_like_any_image(edge_agent, tmp_path):
    files = [ct(tmp_path / f"{number}.dcm", number, value=0) for number in range(3)]
    result = edge_agent.ask("What do you see in this CT?", image=packed(tmp_path / "x.zip", *files))
    assert "computed tomography (CT)" in result["answer"] and "3 frames" in result["answer"]


@pytest.mark.parametrize("how", ["no image", "text", "cut off", "claims", "encrypted entry"])
def test_a_bad_zip_gets_one_clear_line(tmp_path, how):
    path = packed(tmp_path / "x.zip", ct(tmp_path / "a.dcm"))
    if how in ("no image", "text"):
        (tmp_path / "a.txt").write_text("hello" * 100)
        path = packed(tmp_path / "x.zip", tmp_path / "a.txt")
    elif how == "cut off":
        path.write_bytes(path.read_bytes()[:-200])
    elif how == "claims":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb.dcm", b"\0" * (MAX_UNPACKED + 1))
    else:
        raw = bytearray(path.read_bytes())
        raw[6] |= 1
        raw[raw.index(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(raw)
    for read in (load_image, load_slices, read_header):
        with pytest.raises(UsageError) as caught:
            read(path)
        assert caught.value.hint and "\n" not in caught.value.line()


@pytest.mark.parametrize("wrong", [{"RescaleSlope": None, "RescaleIntercept": 0}, {"NumberOfFrames": 3}])
def test_a_ct_whose_scale_or_frames_are_wrong_gets_one_clear_line(tmp_path, wrong):
    from pydicom.dataset import Dataset
    from pydicom.sequence import Sequence

    scale, frame = Dataset(), Dataset()
    scale.RescaleSlope, scale.RescaleIntercept = 1, 0
    frame.PixelValueTransformationSequence = Sequence([scale])  # of one frame, where there are three
    groups = {} if "RescaleSlope" in wrong else {"PerFrameFunctionalGroupsSequence": Sequence([frame])}
    path = dicom_file(tmp_path / "x.dcm", np.zeros((3, 4, 4), np.uint16), **wrong, **groups)
    with pytest.raises(UsageError, match="truncated or damaged"):
        load_slices(path)


def test_a_header_that_claims_a_billion_frames_costs_no_memory(tmp_path):
    path = dicom_file(tmp_path / "x.dcm", RAMP, **HOUNSFIELD, NumberOfFrames=10**9)
    with pytest.raises(UsageError, match="truncated or damaged"):
        load_slices(path)
