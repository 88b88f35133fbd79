"""`docgemma kaggle build`: a folder for `kaggle kernels push`, and in it one for `kaggle datasets create`.

A push carries one notebook of less than 1 MB. The wheel, with data and the edge model inside, is far larger: it travels
as a dataset, which the kernel's metadata attaches.
"""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from docgemma.errors import ConfigError, UsageError
from docgemma.kaggle.kernel import LIMIT, build_kernel, sent_bytes
from docgemma.kaggle.t4 import check
from docgemma.paths import PACKAGE

ROOT = PACKAGE.parent
PARTS = ("docgemma", "data", "pyproject.toml", "setup.py", "README.md", "LICENSE")  # what a wheel is made from
FILES = ("kaggle_kernel.json", "notebooks", *PARTS)
SETUPTOOLS = 75
USER = "INSERT_USERNAME_HERE"  # in kaggle_kernel.json, as Kaggle's own templates write it
USER_SLUG = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
DATASET = {  # for `kaggle datasets create`
    "title": "DocGemma package",
    "subtitle": "The DocGemma wheel: code, data and the edge model",
    "description": "The Python package that the DocGemma kernel installs. MIT licence; the patients are synthetic.",
    "licenses": [{"name": "other"}],  # Kaggle lists no MIT; the description names it
}


def build(out: Path, user: str, root: Path = ROOT) -> dict[str, Any]:
    """Assemble the folder.

    Args:
        out: made if it is not there; an earlier build in it is replaced.
        user: the Kaggle user who will push it.

    Returns:
        What was made: `folder`, `kernel`, `dataset`, sizes in bytes, the `checks` for a T4, and the `commands` to run.

    Raises:
        ConfigError: this is not a checkout of the repository, the wheel cannot be built, or a check fails.
        UsageError: the folder holds something else, or the name is not one of a Kaggle user.
    """
    _check_places(out, root)
    metadata = read_metadata(root / "kaggle_kernel.json", user)
    kernel, checks = build_kernel(list((root / "notebooks").glob("*.ipynb"))), check(metadata)
    failed = [f"{item.name}: {item.found}" for item in checks if not item.ok]
    if sent_bytes(kernel) >= LIMIT:
        failed.append(f"Size: the notebook has {sent_bytes(kernel):,} bytes, Kaggle takes fewer than {LIMIT:,}")
    if failed:
        raise ConfigError(f"The kernel would not run on Kaggle. {'; '.join(failed)}.", hint="Mend kaggle_kernel.json.")
    dataset = out / "dataset"
    shutil.rmtree(dataset, ignore_errors=True)
    dataset.mkdir(parents=True)
    wheel = build_wheel(dataset, root)
    _write(out / "kernel-metadata.json", metadata)
    _write(out / metadata["code_file"], kernel)
    _write(dataset / "dataset-metadata.json", {"id": metadata["dataset_sources"][0], **DATASET})
    return {
        "folder": str(out), "kernel": metadata["id"], "dataset": metadata["dataset_sources"][0],
        "kernel_bytes": sent_bytes(kernel), "dataset_bytes": wheel.stat().st_size,
        "checks": [vars(item) for item in checks], "commands": commands(out, metadata),
    }  # fmt: skip


def build_wheel(folder: Path, root: Path = ROOT) -> Path:
    """The package as a wheel, built from a copy, so that the checkout stays as it is.

    Raises:
        ConfigError: pip could not build it.
    """
    with tempfile.TemporaryDirectory() as scratch:
        for part in PARTS:
            _copy(root / part, Path(scratch, part))
        isolation = ["--no-build-isolation"] if _setuptools() >= SETUPTOOLS else []  # then no network is needed
        arguments = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", *isolation, "-w", str(folder), scratch]
        done = subprocess.run(arguments, capture_output=True, text=True)
    wheels = sorted(folder.glob("docgemma-*.whl"))
    if done.returncode or not wheels:
        hint = "Run: pip install 'setuptools>=75'"
        raise ConfigError(f"The wheel could not be built: {done.stderr.strip()[-300:]}", hint=hint)
    return wheels[-1]


def read_metadata(path: Path, user: str) -> dict[str, Any]:
    """The kernel's metadata with the user's name filled in. What else Kaggle demands of it, its client checks.

    Raises:
        ConfigError: the file is not there, or not JSON.
        UsageError: the name cannot be one of a Kaggle user.
    """
    if not USER_SLUG.fullmatch(user):
        raise UsageError(
            f"{user!r} is not the name of a Kaggle user.",
            hint="Give it as it stands in your profile's address: --user NAME, or KAGGLE_USERNAME.",
        )
    try:
        metadata: dict[str, Any] = json.loads(path.read_text(encoding="utf-8").replace(USER, user))
    except (OSError, json.JSONDecodeError) as error:
        raise ConfigError(f"The kernel's metadata cannot be read from {path}.", hint="Restore the file.") from error
    return metadata


def commands(out: Path, metadata: dict[str, Any]) -> list[str]:
    """What to run next, with Kaggle's own client."""
    return [
        "pip install kaggle",
        f"kaggle datasets create -p {out / 'dataset'}",
        f"kaggle datasets status {metadata['dataset_sources'][0]}",
        f"kaggle kernels push -p {out}",
    ]


def _check_places(out: Path, root: Path) -> None:
    lacking = [name for name in FILES if not (root / name).exists()]
    if lacking:
        raise ConfigError(
            f"A kernel is built from the repository; {root} has no {lacking[0]}.",
            hint="Clone it, run `pip install -e .` there, and try again.",
        )
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / "kernel-metadata.json").is_file())):
        raise UsageError(f"{out} holds something else.", hint="Name a new or an empty folder: --out DIR.")


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    else:
        shutil.copy(source, target)


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _setuptools() -> int:
    try:
        return int(importlib.metadata.version("setuptools").split(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return 0
