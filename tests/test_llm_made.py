"""What is made of a weights file: found again, and cleared away when nobody needs it."""

import os
import time

import pytest

from docgemma.llm.made import ABANDONED, UNUSED, sweep, used

NAME = "tiny.Q4_1"


@pytest.mark.parametrize(
    ("name", "age", "goes"),
    [
        (f"{NAME}-abcd.part", ABANDONED + 60, True),
        (f"{NAME}-abcd.part", ABANDONED - 60, False),  # it may be another process's
        (f"{NAME}-0123456789ab.gguf", UNUSED + 60, True),
        (f"{NAME}-0123456789ab", UNUSED + 60, True),
        (f"{NAME}-0123456789ab.gguf", UNUSED - 60, False),
        ("other-0123456789ab.gguf", UNUSED + 60, False),  # made of other weights, which may be in use
        (f"{NAME}.gguf", UNUSED + 60, False),  # a person's own file
        ("medgemma", UNUSED + 60, False),
    ],
)
@pytest.mark.parametrize("folder", [False, True], ids=["file", "folder"])
def test_only_what_is_nobodys_goes(tmp_path, name, age, goes, folder):
    path = tmp_path / name
    path.mkdir() if folder else path.write_bytes(b"weights")
    os.utime(path, (time.time() - age,) * 2)
    sweep(tmp_path, NAME)
    assert path.exists() is not goes


def test_what_is_used_stays(tmp_path):
    path = tmp_path / f"{NAME}-0123456789ab.gguf"
    path.write_bytes(b"weights")
    os.utime(path, (0, 0))
    assert used(path) == path
    sweep(tmp_path, NAME)
    assert path.exists()
