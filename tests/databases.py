"""Where the memory tests run: a SQLite file always, a real PostgreSQL server where Debian's is installed."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def postgres_programs() -> Path | None:
    """The folder of Debian's newest PostgreSQL server, if there is one."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@contextlib.contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server of our own on a free loopback port; yields its address.

    Its files are not in pytest's folder: every pytest that starts closes that to other users, such as PostgreSQL's.
    """
    programs = postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: apt-get install postgresql)")
    data = Path(tempfile.mkdtemp(prefix="docgemma-postgres-"))
    root = os.geteuid() == 0  # PostgreSQL refuses to run as root
    if root:
        shutil.chown(data, "postgres")
    user = {"user": "postgres", "group": "postgres", "extra_groups": []} if root else {}
    run = {"check": True, "capture_output": True, "cwd": data, **user}
    subprocess.run([programs / "initdb", "-A", "trust", "-U", "docgemma", "--no-sync", "-D", data], **run)
    port = free_port()
    options = f"-p {port} -k {data} -c listen_addresses=127.0.0.1 -c fsync=on"
    log = data / "server.log"
    subprocess.run([programs / "pg_ctl", "-D", data, "-o", options, "-l", log, "-w", "start"], **run)
    try:
        yield f"postgresql://docgemma@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **{**run, "check": False})
        shutil.rmtree(data, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
