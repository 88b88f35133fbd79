"""A real MariaDB server of our own, where Debian's is installed."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from tests.databases import free_port

QUICK = ["--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M", "--skip-log-bin", "--performance-schema=OFF"]
QUICK += ["--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0"]  # no test pulls its plug


@contextlib.contextmanager
def mariadb_server(folder: Path) -> Iterator[str]:
    """Start one on a free loopback port, with an empty database `openemr`; yields its root address."""
    server = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin:/usr/libexec")
    if server is None or shutil.which("mariadb-install-db") is None:
        pytest.skip("MariaDB's server is not installed (Debian: apt-get install mariadb-server)")
    data, port = folder / "mysql", free_port()
    user = ["--user=root"] if os.geteuid() == 0 else []
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db", *user]
    subprocess.run([*install, "--auth-root-authentication-method=normal"], check=True, capture_output=True)
    listen = ["--bind-address=127.0.0.1", f"--port={port}", "--socket=s", f"--pid-file={data}/pid"]
    with (folder / "mysql.log").open("wb") as log:
        command = [server, "--no-defaults", f"--datadir={data}", *listen, *QUICK, *user]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        for _ in range(300):
            assert process.poll() is None, (folder / "mysql.log").read_text(errors="replace")[-2000:]
            with contextlib.suppress(pymysql.OperationalError):
                connection = pymysql.connect(host="127.0.0.1", port=port, user="root")
                break
            time.sleep(0.1)
        with contextlib.closing(connection):
            connection.cursor().execute("CREATE DATABASE openemr CHARACTER SET utf8mb4")
        yield f"mysql://root@127.0.0.1:{port}/openemr"
    finally:
        process.terminate()
        process.wait(30)
