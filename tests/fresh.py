"""A Python as a user has it after `pip install`: this one's libraries, and of this project only its wheel."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "tests", "*.pyc")


def build_wheel(folder: Path) -> Path:
    """The project's wheel, built from a copy of the tree with no network."""
    tree = shutil.copytree(ROOT, folder / "tree", ignore=NOT_COPIED)
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(tree))
    shutil.rmtree(tree)
    return next(folder.glob("docgemma-*.whl"))


def fresh_python(folder: Path) -> Path:
    """An interpreter with this one's third-party libraries, and not the checkout: its .pth files are not followed."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    site = run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    Path(site, "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


def empty_environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment of somebody who has just arrived: an empty home, no setting."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "PIP_NO_INDEX": "1", **more}


def run(*args: str, **options) -> subprocess.CompletedProcess:
    done = subprocess.run(args, capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stderr[-3000:]
    return done
