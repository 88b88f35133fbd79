"""What somebody meets in the first minutes: the greeting, help, completion of commands, and a doctor with remedies."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from docgemma import doctor, paths
from docgemma.errors import ConfigError
from docgemma.llm import medgemma
from docgemma.settings import Settings

COMMAND = Path(sys.executable).with_name("docgemma")
HEAVY = {"docgemma.agent", "fastapi", "gradio", "httpx", "langgraph", "numpy", "pydantic", "torch", "transformers"}


def run(home: Path, *args: str, **env: str) -> subprocess.CompletedProcess:
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "DOCGEMMA_SOURCES": "offline", **env}
    return subprocess.run(args, capture_output=True, text=True, timeout=120, env=environment, stdin=subprocess.DEVNULL)


def test_docgemma_alone_greets_and_suggests_commands_that_exist(tmp_path: Path) -> None:
    done = run(tmp_path, str(COMMAND))
    assert done.returncode == 0 and "not a medical device" in done.stdout
    for command in ("ask", "chat", "demo", "doctor"):
        assert f"docgemma {command}" in done.stdout
        assert run(tmp_path, str(COMMAND), command, "--help").returncode == 0
    assert not any(tmp_path.iterdir())  # a greeting leaves nothing behind


def test_help_loads_nothing_that_takes_long(tmp_path: Path) -> None:
    """That is what keeps it under 0.3 s."""
    code = "import sys, docgemma.cli as cli\nsys.argv = ['docgemma', '--help']\ntry:\n    cli.main()\nfinally:\n"
    done = run(tmp_path, sys.executable, "-c", f"{code}    print(*sys.modules, sep='\\n', file=sys.stderr)")
    assert "ask" in done.stdout
    assert not HEAVY & set(done.stderr.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_installed(tmp_path: Path, shell: str) -> None:
    done = run(tmp_path, str(COMMAND), "--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0 and "_DOCGEMMA_COMPLETE" in done.stdout, done.stderr


def test_bash_completes_what_has_been_installed(tmp_path: Path) -> None:
    installed = run(tmp_path, "bash", "-c", "docgemma --install-completion; true")
    assert "completion installed" in installed.stdout, installed.stderr
    for words, expected in (("do", "doctor"), ("ask --ima", "--image"), ("ehr sea", "search")):
        count = len(words.split())
        script = f"source ~/.bashrc; COMP_WORDS=(docgemma {words}); COMP_CWORD={count}; _docgemma_completion docgemma"
        assert expected in run(tmp_path, "bash", "-c", f'{script}; echo "${{COMPREPLY[@]}}"').stdout.split()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["aks", "hello"], ["aks", "Did you mean 'ask'", "docgemma --help"]),
        (["ask", "--modle", "edge"], ["--modle", "--model", "docgemma ask --help"]),
        (["ehr"], ["docgemma ehr --help"]),
        (["kaggle", "build"], ["--user", "KAGGLE_USERNAME"]),
    ],
)
def test_a_slip_gets_one_line_that_says_what_to_do(tmp_path: Path, args: list[str], words: list[str]) -> None:
    done = run(tmp_path, str(COMMAND), *args)
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.strip().splitlines()) == 1
    assert all(word in done.stderr for word in words), done.stderr


@pytest.fixture
def clinic(settings: Settings, monkeypatch: pytest.MonkeyPatch):
    """The doctor's report with some modules gone; live services are not asked."""

    def examine(*gone: str, **changes) -> dict[str, doctor.Check]:
        real = doctor.find_spec
        monkeypatch.setattr(doctor, "find_spec", lambda name: None if name in gone else real(name))
        return {check.name: check for check in doctor.examine(settings.model_copy(update=changes))}

    return examine


@pytest.mark.parametrize(
    ("gone", "line", "fix"),
    [
        ("xllamacpp", "GGUF models", "pip install xllamacpp"),
        ("torch", "MedGemma", "docgemma[transformers]"),
        ("llguidance", "MedGemma", "docgemma[transformers]"),
        ("gradio", "Browser demo", "docgemma[demo]"),
        ("uvicorn", "REST API", "docgemma[serve]"),
        ("ipywidgets", "Notebooks", "docgemma[notebooks]"),
        ("playwright", "Films of the demo", "docgemma[record]"),
    ],
)
def test_the_doctor_names_the_fix_for_a_library_that_is_missing(clinic, gone: str, line: str, fix: str) -> None:
    check = clinic(gone)[line]
    assert not check.ok and fix in check.fix and (gone in check.found or line == "GGUF models")


def test_the_doctor_names_the_fix_for_a_damaged_reader(clinic, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert clinic()["Edge model"].ok
    broken = tmp_path / "reader.npz"
    broken.write_bytes(b"no weights")
    monkeypatch.setattr(paths, "data_file", lambda *parts: broken)
    check = clinic()["Edge model"]
    assert not check.ok and check.needed and "reader.npz" in check.found + check.fix


@pytest.mark.parametrize(
    ("device", "cuda", "weights", "found", "fix"),
    [
        (False, False, False, "no NVIDIA GPU", "Kaggle"),
        (True, False, False, "cannot use it", "built for CUDA"),
        (True, True, False, "weights are not", "HF_TOKEN"),
        (True, True, True, "weights in", ""),
    ],
)
def test_the_doctor_says_how_far_medgemma_is(
    clinic, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, device, cuda, weights, found: str, fix: str
) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: True)
    monkeypatch.setattr(medgemma, "nvidia_device", lambda: device)
    monkeypatch.setattr(medgemma, "find_weights", lambda home: tmp_path if weights else None)
    monkeypatch.setattr(doctor, "_cuda", lambda: cuda)
    check = clinic()["MedGemma"]
    assert check.ok == weights and found in check.found and fix in check.fix and not check.needed


@pytest.mark.parametrize(
    ("sources", "ok", "words"),
    [("offline", True, "not asked"), ("auto", False, "snapshot is used instead"), ("live", False, "DOCGEMMA_SOURCES")],
)
def test_a_service_out_of_reach_has_a_fix_that_fits_the_setting(clinic, sources: str, ok: bool, words: str) -> None:
    nowhere = {name: "http://127.0.0.1:9" for name in ("openfda_url", "ctgov_url", "europepmc_url", "rxnav_url")}
    check = clinic(sources=sources, **nowhere)["openFDA"]
    assert check.ok == ok and words in check.found + check.fix and not check.needed


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "not an address"])
def test_a_model_server_out_of_reach_is_not_said_to_fall_back(clinic, url: str) -> None:
    check = clinic(llm_url=url)["Model server"]
    assert not check.ok and "DOCGEMMA_LLM_URL" in check.fix


def test_without_chromium_films_have_a_fix(clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking() -> str:
        raise ConfigError("Chromium is not on the PATH.", hint="Install it.")

    monkeypatch.setattr(doctor, "find_chromium", lacking)
    assert clinic()["Films of the demo"].fix == "Install it."


def test_a_broken_record_store_has_a_fix_and_counts_as_needed(clinic, tmp_path: Path) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"not a database" * 300)
    check = clinic(ehr=str(broken))["Record store"]
    assert not check.ok and check.needed and "DOCGEMMA_EHR" in check.fix + check.found


def test_everything_that_is_not_well_has_a_fix(clinic) -> None:
    assert [
        check.name for check in clinic("gradio", "torch", "jupyter").values() if not check.ok and not check.fix
    ] == []


def test_a_missing_extra_is_no_fault_of_the_whole(home: Path) -> None:
    done = run(home, str(COMMAND), "doctor", "--json", DOCGEMMA_HOME=str(home))
    report = json.loads(done.stdout)
    assert report["ok"] and not all(check["ok"] for check in report["checks"])  # a model server is not set up here


def test_a_path_in_the_report_stays_in_one_piece(home: Path) -> None:
    done = run(home, str(COMMAND), "doctor", DOCGEMMA_HOME=str(home))
    assert f"{home}/memory.sqlite: readable and writable" in done.stdout


BARE = """
import sys
for name in ("jinja2", "gradio", "playwright", "av", "fastapi", "pdfplumber", "qdrant_client", "duckdb", "torch"):
    sys.modules[name] = None  # as where only the package's own needs are installed
from docgemma.cli import main
sys.argv = ["docgemma", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    "command", ["doctor", "demo", "demo record", "serve", "rcm ask x --pdf data/rcm/notes/misfiled_fax.pdf"]
)
def test_where_no_extra_is_installed_each_command_says_what_to_install(command: str, tmp_path: Path) -> None:
    env = {**os.environ, "DOCGEMMA_HOME": str(tmp_path), "DOCGEMMA_SOURCES": "offline"}
    done = subprocess.run(
        [sys.executable, "-c", BARE, *command.split()], env=env, capture_output=True, text=True, timeout=120,
        cwd=paths.PACKAGE.parent,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert "should not" not in said and "Traceback" not in said and "docgemma[" in said, said
    assert (done.returncode == 0) == (command == "doctor")
