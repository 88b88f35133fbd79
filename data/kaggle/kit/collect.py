"""`docgemma kaggle collect`: the kernel's downloaded output into `data/results/medgemma`, and the texts made from it.

Everything is made in a copy of the repository first; nothing here is changed unless all of it could be made.
"""

import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from docgemma.errors import ConfigError, UsageError
from docgemma.paths import PACKAGE, kit

evidence = kit("kaggle", "evidence")
STORED = Path("data", "results", "medgemma")
MADE = ("README.md", "writeup", "notebooks", "data/results")  # what a build writes
LEFT_OUT = (".*", "__pycache__", "*.egg-info", "build")
NEEDED = {  # what texts read of a part
    "sections": "turns", "heldout": "rows", "natural": "sets", "scenarios": "film", "speed": "calls",
    "experiments": "suites",
}  # fmt: skip


def collect(folder: Path, root: Path = PACKAGE.parent) -> dict[str, Any]:
    """Take a downloaded output in; returns `model`, `date`, `not_run` (parts that failed over there), `changed` files.

    Raises:
        UsageError: the folder is none of this kernel's, incomplete, of another version or model, or of a sample.
        ConfigError: this is not a checkout, or the texts could not be made from it.
    """
    folder = folder if (folder / "manifest.json").is_file() else folder / "docgemma-results"
    manifest, parts = read_output(folder)
    if not (root / "writeup" / "build.py").is_file():
        raise ConfigError(
            f"{root} is no checkout of the repository.", hint="Clone it and run `pip install -e .` there."
        )
    with tempfile.TemporaryDirectory(prefix="docgemma-collect-") as scratch:
        copy = shutil.copytree(root, Path(scratch, "copy"), ignore=shutil.ignore_patterns(*LEFT_OUT))
        shutil.rmtree(copy / STORED, ignore_errors=True)
        (copy / STORED).mkdir(parents=True)
        for name, value in {"manifest": manifest, **parts}.items():
            text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
            (copy / STORED / f"{name}.json").write_text(text, encoding="utf-8")
        if (folder / "scenarios").is_dir():
            shutil.copytree(folder / "scenarios", copy / "writeup" / "media" / "medgemma", dirs_exist_ok=True)
        _rebuild(copy)
        changed = _replace(copy, root)
    not_run = {name: value["not_run"] for name, value in parts.items() if "not_run" in value}
    return {"model": manifest["model"], "date": manifest["date"], "not_run": not_run, "changed": changed}


def read_output(folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The manifest and every part of an output folder. Raises UsageError."""
    if not (folder / "manifest.json").is_file():
        hint = "Give the folder that `kaggle kernels output` made: it has docgemma-results in it."
        raise UsageError("This folder is no output of the kernel.", hint=hint)
    manifest = _read(folder / "manifest.json")
    here = {"format": evidence.FORMAT, "version": version("docgemma"), "model": "medgemma", "sample": None}
    wrong = [f"{key} {manifest.get(key)}, not {value}" for key, value in here.items() if manifest.get(key) != value]
    if wrong or "date" not in manifest:
        hint = "Run it with MedGemma attached and a GPU: Settings > Accelerator > GPU T4 x2."
        if any(line.startswith(("format", "version")) for line in wrong):
            hint = "Build and push the kernel of this version, run it, and download it again."
        raise UsageError(f"This output cannot be taken in: {'; '.join(wrong) or 'no date'}.", hint=hint)
    missing = [name for name in evidence.PARTS if not (folder / f"{name}.json").is_file()]
    parts = {name: _read(folder / f"{name}.json") for name in evidence.PARTS if name not in missing}
    missing += [name for name, value in parts.items() if "not_run" not in value and NEEDED[name] not in value]
    if missing:
        hint = "Run the kernel to its end on Kaggle, and download it again."
        raise UsageError(f"This output is incomplete; it lacks {', '.join(missing)}.", hint=hint)
    return manifest, parts


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path.name} of this output cannot be read.", hint="Download it again.") from error
    if not isinstance(found, dict):
        raise UsageError(f"{path.name} of this output is damaged.", hint="Download it again.")
    return found


def _rebuild(copy: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(copy), "DOCGEMMA_DATA": str(copy / "data")}
    command = [sys.executable, str(copy / "writeup" / "build.py"), "--notebooks"]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    if done.returncode:
        line = (done.stderr.strip().splitlines() or ["no word of why"])[-1][:200]
        raise ConfigError(f"The texts cannot be made from this output: {line}", hint="Nothing was changed. Report it.")


def _replace(copy: Path, root: Path) -> list[str]:
    """Put every file that became another in the place of the old one; their names."""
    changed = []
    for top in MADE:
        files = [path for path in [copy / top, *(copy / top).rglob("*")] if path.is_file()]
        for path in (path for path in files if "__pycache__" not in path.parts):
            name = path.relative_to(copy)
            if not (root / name).is_file() or not filecmp.cmp(path, root / name, shallow=False):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                new = (root / name).with_name(f".{path.name}.new")
                shutil.copyfile(path, new)
                new.replace(root / name)
                changed.append(str(name))
    return sorted(changed)
