"""Who may read what is kept of patients, and how it is forgotten: on the real files."""

import json
import os
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from docgemma.agent import Agent
from docgemma.errors import UnknownThreadError
from docgemma.forget import written_at
from docgemma.memory import last_checkpoints
from docgemma.settings import Settings
from tests.forked import docgemma

SECRET = "zebrafish-sentinel"


def run(home: Path, *args: str, umask: int = 0o022, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "DOCGEMMA_HOME": str(home), "DOCGEMMA_SOURCES": "offline", **more}
    return docgemma(args, env, umask=umask)


def open_to_others(folder: Path) -> list[str]:
    """What others than the owner may read, below a folder and the folder itself; model files hold no patient."""
    found = [path for path in [folder, *folder.rglob("*")] if "models" not in path.parts and not path.is_symlink()]
    patient = [path for path in found if path.is_dir() or path.suffix in {".png", ".key"} or "sqlite" in path.name]
    return [path.name for path in patient if stat.S_IMODE(path.stat().st_mode) & 0o077 and "knowledge" not in path.name]


def bytes_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file() and "models" not in path.parts)


def test_a_first_start_makes_files_that_only_their_owner_reads(tmp_path: Path, png: Path) -> None:
    home = tmp_path / "deep" / "home"
    done = run(home, "ask", "What do you see?", "--image", str(png), "--json", umask=0o000)
    assert done.returncode == 0, done.stderr
    assert (home / "memory.sqlite").exists() and list(home.rglob("*.png"))
    assert open_to_others(home) == []
    assert open_to_others(home.parent) == []


def test_files_of_an_earlier_version_are_mended_at_the_next_start(home: Path) -> None:
    settings = Settings(home=home, sources="offline")
    run(home, "ask", "Check FDA warnings for dofetilide")
    home.chmod(0o755)
    for file in home.glob("*.sqlite*"):
        file.chmod(0o644)
    assert open_to_others(home)
    run(home, "ask", "Check FDA warnings for dofetilide")
    assert open_to_others(home) == []
    assert settings.db_location


def test_a_folder_that_is_shared_keeps_its_mode_and_its_files_are_private(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    run(tmp_path / "home", "ask", "Check FDA warnings for dofetilide", DOCGEMMA_DB=str(shared / "talk.sqlite"))
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755
    assert stat.S_IMODE((shared / "talk.sqlite").stat().st_mode) == 0o600


def asked(home: Path, text: str, *more: str) -> str:
    done = run(home, "ask", text, *more, "--json")
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["thread"])


def test_a_forgotten_conversation_leaves_no_byte(home: Path, png: Path) -> None:
    thread = asked(home, f"{SECRET}: what do you see?", "--image", str(png))
    other = asked(home, "Check FDA warnings for dofetilide")
    assert SECRET.encode() in bytes_below(home) and list(home.rglob("images/**/*.png"))
    done = run(home, "forget", thread)
    assert done.returncode == 0 and "approved stay" in done.stdout
    assert SECRET.encode() not in bytes_below(home) and not list(home.rglob("images/**/*.png"))
    assert run(home, "ask", "and warfarin?", "--thread", other).returncode == 0
    again = run(home, "forget", thread)
    assert again.returncode == 2 and "no conversation" in again.stderr


def test_an_approved_entry_stays_and_an_entry_that_waits_goes(home: Path) -> None:
    kept = asked(home, "Prescribe amlodipine 5 mg once daily for def-456")
    run(home, "ask", "--thread", kept, "--approve")
    asked(home, "Prescribe metformin 500 mg twice daily for def-456")
    (home / "http-cache").mkdir(exist_ok=True)
    (home / "http-cache" / "answer").write_bytes(b"of a public service")
    done = run(home, "forget", "--all", "--json")
    assert not list(home.glob("http-cache*"))
    assert json.loads(done.stdout) == {"forgotten": 2, "note": "Entries that were approved stay in the patient record."}
    chart = run(home, "ehr", "show", "def-456").stdout
    assert "amlodipine" in chart.lower()


@pytest.mark.parametrize("args", [(), ("--all", "--before", "2026-01-01"), ("some-id", "--all")])
def test_what_is_to_be_forgotten_is_said_in_one_way(home: Path, args: tuple[str, ...]) -> None:
    done = run(home, "forget", *args)
    assert done.returncode == 2 and "forget THREAD" in done.stderr


def test_old_conversations_are_forgotten_by_date(edge_agent: Agent) -> None:
    for thread in ("mine-1", "other-1"):
        edge_agent.ask("Check FDA warnings for dofetilide", thread=thread, create=True)
    checkpoint = last_checkpoints(edge_agent.memory)["mine-1"]
    assert abs(written_at(checkpoint) - datetime.now(UTC)) < timedelta(minutes=1)
    assert edge_agent.forget(before=datetime.now(UTC) - timedelta(days=1)) == 0
    assert edge_agent.forget(before=datetime.now(UTC) + timedelta(seconds=1), prefix="mine") == 1
    assert list(last_checkpoints(edge_agent.memory)) == ["other-1"]
    with pytest.raises(UnknownThreadError):
        edge_agent.forget("mine-1")


def test_the_setting_forgets_at_the_next_start(home: Path) -> None:
    thread = asked(home, "Check FDA warnings for dofetilide")
    assert run(home, "ask", "and warfarin?", "--thread", thread, DOCGEMMA_KEEP_DAYS="7").returncode == 0
    gone = run(home, "ask", "and warfarin?", "--thread", thread, DOCGEMMA_KEEP_DAYS="0")
    assert gone.returncode == 2 and "no conversation" in gone.stderr
