"""A Python as a user has it after `pip install`: this one's libraries, and of this project only its wheel."""

import atexit
import os
import shutil
import subprocess
import tempfile
import venv
from functools import cache
from pathlib import Path
from sysconfig import get_path

from docgemma.paths import PACKAGE, kit

ROOT, build_wheel = PACKAGE.parent, kit("kaggle", "build").build_wheel
__all__ = ["ROOT", "empty_environment", "fresh_python", "run", "wheel"]


@cache
def wheel() -> Path:
    """The project's wheel, built once a session and without a network."""
    folder = Path(tempfile.mkdtemp(prefix="docgemma-wheel-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return build_wheel(folder)


def fresh_python(folder: Path) -> Path:
    """An interpreter with this one's third-party libraries, and not the checkout: its .pth files are not followed."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    site = run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    Path(site, "libraries.pth").write_text(get_path("purelib") + "\n", encoding="utf-8")
    return python


def empty_environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment of somebody who has just arrived: an empty home, no setting."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}  # the other core has tests of its own
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "PIP_NO_INDEX": "1", **threads, **more}


def run(*args: str, **options) -> subprocess.CompletedProcess:
    done = subprocess.run(args, capture_output=True, text=True, **{"timeout": 300, **options})
    assert done.returncode == 0, done.stderr[-3000:]
    return done
