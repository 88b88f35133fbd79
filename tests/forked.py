"""The command line, forked from a process that has loaded everything: a tenth of the time of a start from nothing.

Its own process, files, environment, exit status. tests/test_first_use.py starts the installed command itself.
"""

import multiprocessing
import os
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.loaded"])
STREAMS = (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY))


def docgemma(
    args: Sequence[str], env: Mapping[str, str], *, stdin: str = "", umask: int = 0o022
) -> subprocess.CompletedProcess[str]:
    """Run `docgemma ARGS` with this environment and nothing else of it."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name, _ in STREAMS]
        for path, text in zip(paths, (stdin, "", ""), strict=True):
            path.write_text(text, encoding="utf-8")
        process = FORKS.Process(target=_main, args=(list(args), dict(env), folder, umask))
        process.start()
        process.join(120)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(list(args), 120)
        said = [path.read_text(encoding="utf-8") for path in paths[1:]]
        status = process.exitcode
        process.close()
        return subprocess.CompletedProcess(list(args), status, *said)


def _main(args: list[str], env: dict[str, str], folder: str, umask: int) -> None:
    for number, (name, flags) in enumerate(STREAMS):
        os.dup2(os.open(Path(folder, name), flags), number)
        setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
    os.environ.clear()
    os.environ.update(env)
    os.umask(umask)
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    sys.argv = ["docgemma", *args]
    from docgemma.cli import main

    main()
