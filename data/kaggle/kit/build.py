"""`docgemma kaggle build`: a folder for `kaggle kernels push`, and in it one for `kaggle datasets create`.

A push carries one notebook of less than 1 MB. The wheel, with data and the edge model inside, is far larger: it travels
as a dataset, which the kernel's metadata attaches.
"""

import ast
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from docgemma.errors import ConfigError, UsageError
from docgemma.paths import PACKAGE, kit

ROOT = PACKAGE.parent
NOT_IN_WHEEL = (".*", "__pycache__", "*.egg-info", "build", "tests", "notebooks", "writeup", "benchmarks")
FRAME = Path(__file__).with_name("kernel.ipynb")  # installs and loads the model; notebooks/ give what stands between
TAG = "kernel"  # of the cells that are taken from notebooks/
USER = "INSERT_USERNAME_HERE"  # in kaggle_kernel.json, as Kaggle's own templates write it
USER_SLUG = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
DATASET = {  # for `kaggle datasets create`
    "title": "DocGemma package",
    "subtitle": "The DocGemma wheel: code, data and the edge model",
    "description": "The Python package that the DocGemma kernel installs. MIT licence; the patients are synthetic.",
    "licenses": [{"name": "other"}],  # Kaggle lists no MIT; the description names it
}


def build(out: Path, user: str, private: bool = False, root: Path = ROOT) -> dict[str, Any]:
    """Assemble the folder.

    Args:
        out: made if it is not there; an earlier build in it is replaced.
        user: the Kaggle user who will push it.
        private: kernel and dataset are seen by that user alone, else by everybody.

    Returns:
        What was made: `folder`, `kernel`, `dataset`, sizes in bytes, the `checks` for a T4, and the `commands` to run.

    Raises:
        ConfigError: this is not a checkout of the repository, the wheel cannot be built, or a check fails.
        UsageError: the folder holds something else, or the name is not one of a Kaggle user.
    """
    metadata = read_metadata(root / "kaggle_kernel.json", user) | {"is_private": private}
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / "kernel-metadata.json").is_file())):
        raise UsageError(f"{out} holds something else.", hint="Name a new or an empty folder: --out DIR.")
    checks = kit("kaggle", "t4").check(metadata)
    if failed := [f"{item.name}: {item.found}" for item in checks if not item.ok]:
        raise ConfigError(f"The kernel would not run on Kaggle. {'; '.join(failed)}.", hint="Mend kaggle_kernel.json.")
    notebook, dataset, dataset_id = out / metadata["code_file"], out / "dataset", metadata["dataset_sources"][0]
    shutil.rmtree(dataset, ignore_errors=True)
    dataset.mkdir(parents=True)
    wheel = build_wheel(dataset, root)
    _write(out / "kernel-metadata.json", metadata)
    _write(notebook, build_kernel((root / "notebooks").glob("*.ipynb")))
    _write(dataset / "dataset-metadata.json", {"id": dataset_id, **DATASET})
    return {
        "folder": str(out), "kernel": metadata["id"], "dataset": dataset_id,
        "kernel_bytes": notebook.stat().st_size, "dataset_bytes": wheel.stat().st_size,
        "checks": [{"name": item.name, "ok": item.ok, "found": item.found} for item in checks],
        "commands": [
            "pip install kaggle",
            f"kaggle datasets create{'' if private else ' --public'} -p {dataset}",
            f"kaggle datasets status {dataset_id}",
            f"kaggle kernels push -p {out}",
        ],
    }  # fmt: skip


def read_metadata(path: Path, user: str) -> dict[str, Any]:
    """The kernel's metadata with the user's name filled in. What else Kaggle demands of it, its client checks.

    Raises:
        ConfigError: the file is not there, or not JSON.
        UsageError: the name cannot be one of a Kaggle user.
    """
    if not USER_SLUG.fullmatch(user):
        hint = "Give it as it stands in your profile's address: --user NAME, or KAGGLE_USERNAME."
        raise UsageError(f"{user!r} is not the name of a Kaggle user.", hint=hint)
    return _read(path, user)


def build_kernel(notebooks: Iterable[Path]) -> dict[str, Any]:
    """The kernel's notebook, as JSON: the frame, and behind its start cell the tagged cells of the notebooks in order.

    Raises:
        ConfigError: a notebook cannot be read.
    """
    kernel = _read(FRAME)
    start = 1 + next(number for number, cell in enumerate(kernel["cells"]) if cell["id"] == "kernel-start")
    kernel["cells"][start:start] = [cell for path in sorted(notebooks) for cell in tagged(path)]
    return kernel


def tagged(path: Path) -> Iterator[dict[str, Any]]:
    """A notebook's cells for the kernel: its headings one level down, its own choice of a model left out."""
    for cell in _read(path)["cells"]:
        if TAG in cell["metadata"].get("tags", []):
            lines, is_code = "".join(cell["source"]).splitlines(keepends=True), cell["cell_type"] == "code"
            if is_code:
                text = going_on("".join(line for line in lines if not line.startswith("MODEL = ")))
            else:
                text = "".join(f"#{line}" if line.startswith("#") else line for line in lines)
            source = text.strip().splitlines(keepends=True)
            blank: dict[str, Any] = {"execution_count": None, "outputs": []} if is_code else {}
            if source:
                yield {**cell, "id": f"{path.stem[:2]}-{cell['id']}", "metadata": {}, "source": source, **blank}


def going_on(code: str) -> str:
    """A cell that does not end the run where it fails; what its last line shows is still shown. Constants stay."""
    code = code.strip()
    tree = ast.parse(code)
    if not any(isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) for node in ast.walk(tree)):
        return code
    lines, last = code.splitlines(), tree.body[-1]
    if isinstance(last, ast.Expr) and not ast.unparse(last).startswith("print("):
        lines[last.lineno - 1] = "display(" + lines[last.lineno - 1]
        lines[-1] += ")"
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    inside = {line for node in texts for line in range(node.lineno + 1, (node.end_lineno or 0) + 1)}  # of a text: as is
    indented = [line if number in inside or not line else f"    {line}" for number, line in enumerate(lines, 1)]
    return "\n".join(["with going_on():", *indented])


def build_wheel(folder: Path, root: Path = ROOT) -> Path:
    """The package as a wheel, built from a copy, so that the checkout stays as it is.

    Raises:
        ConfigError: pip could not build it.
    """
    versions = [dist.version for dist in importlib.metadata.distributions(name="setuptools")]
    offline = ["--no-build-isolation"] if versions and int(versions[0].split(".")[0]) >= 75 else []
    with tempfile.TemporaryDirectory() as scratch:
        copy = shutil.copytree(root, Path(scratch, "copy"), ignore=shutil.ignore_patterns(*NOT_IN_WHEEL))
        arguments = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", *offline, "-w", str(folder), str(copy)]
        done = subprocess.run(arguments, capture_output=True, text=True)
    wheels = sorted(folder.glob("docgemma-*.whl"))
    if done.returncode or not wheels:
        hint = "Run: pip install 'setuptools>=75'"
        raise ConfigError(f"The wheel could not be built: {done.stderr.strip()[-300:]}", hint=hint)
    return wheels[-1]


def _read(path: Path, user: str = USER) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8").replace(USER, user))
    except (OSError, json.JSONDecodeError) as error:
        hint = "Clone it, run `pip install -e .` there, and try again."
        raise ConfigError(f"A kernel is built from the repository; {path} cannot be read.", hint=hint) from error
    return found


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
