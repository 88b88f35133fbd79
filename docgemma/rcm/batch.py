"""Ask the same of every PDF in a folder: a JSON line a document, kept as it ends, so that a stopped batch goes on."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypedDict

from docgemma.errors import DocGemmaError, UsageError, kind_and_place
from docgemma.experiments.workers import in_processes, on_ray
from docgemma.paths import private_file

DIED = "The process that read it ended without a result, alone as well. Is there enough memory?"


class Summary(TypedDict):
    """What a batch came to; `charts_per_hour` counts what this run finished, starting its processes included."""

    documents: int  # PDF files in the folder
    same: int  # of these, copies of another: a text is asked of once
    before: int  # finished by an earlier run
    asked: int  # by this one
    failed: int  # of these; their lines say why, and the next run asks again
    statuses: dict[str, int]  # answered, needs_clarification, refused: of all that are finished
    seconds: float
    charts_per_hour: float | None  # None where nothing was finished
    out: str


def batch(
    folder: Path,
    ask: Callable[[Path], dict[str, Any]],
    out: Path,
    workers: int = 1,
    *,
    ray: str | None = None,
    question: str = "",
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Summary:
    """Ask of each PDF below a folder that `out` holds no answer to this question for.

    Args:
        ask: a function of a module, or a partial of one, since it runs in other processes. What it raises becomes
            the document's line and stops nothing; so does the death of its process.
        out: JSON lines, private to their owner: `digest` (SHA-256 of the file), `file`, `question`, `at`, `seconds`,
            and `result` or `error`. Lines are only ever added; the last of a digest counts.
        workers: processes, not threads: a crash costs one document only, and Python reads in one thread at a time
            (12 pages, two cores, best of five: one worker 0.85 s, two threads 0.84 s, two processes 0.41 s).
        ray: address of a Ray cluster that sees the same files, "local" for this machine; instead of `workers`.
        question: what `ask` asks; answers to another one do not count as finished.
        progress: called with the documents done and all.

    Raises:
        UsageError: there is no PDF.
        ConfigError: Ray is not installed, or not there.
    """
    begun = time.monotonic()
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() == ".pdf" and path.is_file())
    if not files:
        raise UsageError(f"There is no PDF in {folder}.", hint="Name a folder of PDF files.")
    digests = {path: _digest(path) for path in files}
    one_each = {digest: path for path, digest in reversed(digests.items())}
    mine = [line for line in read_lines(out) if line["question"] == question and line["digest"] in one_each]
    done = {line["digest"]: line["result"]["status"] for line in mine if "result" in line}
    before, left, failed = len(done), [path for digest, path in one_each.items() if digest not in done], 0
    progress(before, len(one_each))
    with private_file(out).open("a", encoding="utf-8") as file:
        run = partial(_one, ask)
        file.write("" if out.read_bytes()[-1:] in (b"", b"\n") else "\n")  # an earlier run was killed within a line
        for path, found in on_ray(run, left, ray) if ray and left else in_processes(run, left, workers):
            answer = found or {"error": DIED, "seconds": None}
            stamp = {"file": str(path.relative_to(folder)), "question": question, "at": f"{datetime.now(UTC):%FT%TZ}"}
            file.write(json.dumps({"digest": digests[path], **stamp, **answer}, ensure_ascii=False) + "\n")
            file.flush()
            failed += "error" in answer
            done |= {digests[path]: answer["result"]["status"]} if "result" in answer else {}
            progress(len(done) + failed, len(one_each))
    seconds = time.monotonic() - begun
    return Summary(
        documents=len(files), same=len(files) - len(one_each), before=before, asked=len(left), failed=failed,
        statuses=dict(Counter(done.values())), seconds=round(seconds, 2),
        charts_per_hour=round((len(left) - failed) / seconds * 3600, 1) if len(left) > failed else None, out=str(out),
    )  # fmt: skip


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON lines of a file, if it is there; a line that a kill cut off is left out."""
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []:
        with suppress(ValueError):
            yield json.loads(text)


def _one(ask: Callable[[Path], dict[str, Any]], path: Path) -> dict[str, Any]:
    """A document's line: what was answered, or why not, without a text that may hold patient data."""
    begun = time.monotonic()
    try:
        line: dict[str, Any] = {"result": json.loads(json.dumps(ask(path), default=str))}
    except DocGemmaError as error:
        line = {"error": error.line()}
    except Exception as error:  # one document's failure, of whatever kind, is not the batch's
        line = {"error": kind_and_place(error)}
    return {**line, "seconds": round(time.monotonic() - begun, 3)}


def _digest(path: Path) -> str:
    """SHA-256 of a file; of its name where it cannot be read, which its line will say."""
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError:
        return f"unreadable: {path}"
