"""How long the command line takes to begin: `docgemma --help`, and `docgemma ask` until its first node and its end.

    python benchmarks/startup.py [--repeats N]

`ask` runs on a terminal of its own, as for a person, and is timed from the start of the process until "Reading the
request" stands on it; `answered`, until the process has ended, is timed too. Warm: the files are in the page cache.
Cold: before each run the pages of Python, of its packages, of this project and of its data home are given back
(posix_fadvise); what a running process has mapped stays.
"""

import argparse
import os
import pty
import resource
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from common import Report, middle, prepared, say, spread

import docgemma
from docgemma.paths import data_root

FIRST_NODE = b"Reading the request"
QUESTION = "Check FDA warnings for dofetilide"
PROGRAM = [sys.executable, "-m", "docgemma"]
ASK = [*PROGRAM, "ask", QUESTION, "--model", "edge"]
HEAD = ["command", "files", "n", "s", "middle half", "fastest", "CPU s", "target, warm"]
TARGETS = {"docgemma --help": 0.3, "docgemma ask, first node": 1.0}  # seconds, warm


Seconds = tuple[float, float]  # by the clock, and of the processor


def finish(command: list[str], home: Path | None = None) -> Seconds:
    """Until the process has ended."""
    environment = offline(home) if home else None
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_node(home: Path) -> Seconds:
    """Until the first node says that it has started; then the process is stopped."""
    ours, theirs = pty.openpty()
    start = time.perf_counter()
    process = subprocess.Popen(ASK, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=offline(home))
    os.close(theirs)
    seen, seconds = b"", None
    for piece in read(ours):
        seen += piece
        if seconds is None and FIRST_NODE in seen:
            seconds = time.perf_counter() - start, processor_seconds(process.pid)
            process.kill()
    os.close(ours)
    process.wait()
    if seconds is None:
        raise RuntimeError(f"docgemma ask did not begin: {seen.decode(errors='replace')[-300:]}")
    return seconds


def offline(home: Path) -> dict[str, str]:
    return {**os.environ, "DOCGEMMA_HOME": str(home), "DOCGEMMA_SOURCES": "offline", "TERM": "xterm"}


def processor_seconds(pid: int) -> float:
    """User and system time of a running process so far (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # Linux says so when the other end is closed
            return
        if not piece:
            return
        yield piece


def evict(home: Path) -> None:
    """Give back the clean pages of everything that a start reads."""
    paths = sysconfig.get_paths()
    folders = {Path(paths["stdlib"]), Path(paths["purelib"]), Path(docgemma.__file__).parent, data_root(), home}
    folders.add(Path(sys.executable).resolve().parent)
    for folder in folders:
        for path in (item for item in folder.rglob("*") if item.is_file()):
            try:
                file = os.open(path, os.O_RDONLY)
            except OSError:
                continue
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def cached_mb() -> float:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Cached:")) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    about = " ".join(__doc__.partition("\n\n")[2].partition("\n\n")[2].split())
    with prepared() as settings:
        measures: dict[str, Callable[[], Seconds]] = {
            "python, nothing else": lambda: finish([sys.executable, "-c", "pass"]),
            "docgemma --help": lambda: finish([*PROGRAM, "--help"]),
            "docgemma ask, first node": lambda: first_node(settings.home),
            "docgemma ask, answered": lambda: finish(ASK, settings.home),
        }
        seconds: dict[tuple[str, str], list[Seconds]] = {}
        given_back = []
        for name, measure in measures.items():
            measure()  # bytecode, first-run files
            for repeat in range(repeats):
                say(f"{name}: {repeat + 1} of {repeats}")
                before = cached_mb()
                evict(settings.home)
                given_back.append(before - cached_mb())
                seconds.setdefault((name, "cold"), []).append(measure())
                seconds.setdefault((name, "warm"), []).append(measure())
        report = Report("startup", about, repeats=repeats)
        rows = []
        for (name, kind), found in seconds.items():
            wall, cpu = zip(*found, strict=True)
            target = TARGETS.get(name, "-")
            rows.append([name, kind, len(wall), middle(wall), spread(wall), min(wall), middle(cpu), target])
        note = f"Before a cold run {middle(given_back):.0f} MB of page cache were given back (median)."
        report.table("start-up", HEAD, rows, note)
        report.keep("seconds", {f"{name}, {kind}": found for (name, kind), found in seconds.items()})


if __name__ == "__main__":
    main()
