"""Ask the same of every PDF in a folder: a JSON line a document, kept as it ends, so that a stopped batch goes on."""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from hashlib import file_digest
from pathlib import Path
from typing import Any, TextIO, TypedDict

from docgemma.errors import DocGemmaError, UsageError, kind_and_place
from docgemma.experiments.workers import in_processes, on_ray
from docgemma.paths import private_file

DIED = "The process that read it ended without a result, alone as well. Is there enough memory?"
Line = dict[str, Any]


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
    status = {line["digest"]: _status(line) for line in read_lines(out) if line["question"] == question}
    status = {digest: status[digest] for digest in one_each if status.get(digest)}
    before, left = len(status), [path for digest, path in one_each.items() if digest not in status]
    failed = 0
    progress(before, len(one_each))
    with _to_add(out) as file:
        run = partial(_one, ask)
        for path, found in on_ray(run, left, ray) if ray and left else in_processes(run, left, workers):
            answer = found or {"error": DIED, "seconds": None}
            stamp = {"file": str(path.relative_to(folder)), "question": question, "at": f"{datetime.now(UTC):%FT%TZ}"}
            line = {"digest": digests[path], **stamp, **answer}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
            status[digests[path]] = _status(line)
            failed += "error" in line
            progress(len(status), len(one_each))
    seconds = time.monotonic() - begun
    return Summary(
        documents=len(files), same=len(files) - len(one_each), before=before, asked=len(left), failed=failed,
        statuses=dict(Counter(filter(None, status.values()))), seconds=round(seconds, 2),
        charts_per_hour=round((len(left) - failed) / seconds * 3600, 1) if len(left) > failed else None, out=str(out),
    )  # fmt: skip


def read_lines(out: Path) -> Iterator[Line]:
    """The whole lines of a batch's file; one that a kill cut off is left out, and its document asked again."""
    if not out.exists():
        return
    with out.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for text in file:
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                continue
            if isinstance(line, dict) and {"digest", "question"} <= line.keys():
                yield line


def _status(line: Line) -> str:
    """What became of a document; "" where it failed, so that it is asked again."""
    return str(line["result"].get("status", "answered")) if "result" in line else ""


def _to_add(out: Path) -> TextIO:
    """The file, open at its end, on a line of its own also where an earlier run was killed within one."""
    file = private_file(out).open("a", encoding="utf-8")
    with out.open("rb") as written:
        if written.seek(0, os.SEEK_END) and written.seek(-1, os.SEEK_END) and written.read() != b"\n":
            file.write("\n")
    return file


def _one(ask: Callable[[Path], dict[str, Any]], path: Path) -> Line:
    """A document's line: what was answered, or why not, without a text that may hold patient data."""
    begun, line = time.monotonic(), Line()
    try:
        line["result"] = json.loads(json.dumps(ask(path), default=str))
    except DocGemmaError as error:
        line["error"] = error.line()
    except Exception as error:  # one document's failure, of whatever kind, is not the batch's
        line["error"] = kind_and_place(error)
    return {**line, "seconds": round(time.monotonic() - begun, 3)}


def _digest(path: Path) -> str:
    """SHA-256 of a file; of its name where it cannot be read, which its line will say."""
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        return f"unreadable: {path}"
