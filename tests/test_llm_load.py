"""From a name to a model: what is chosen, what is refused, and what is not imported on the way."""

import subprocess
import sys
from pathlib import Path

import pytest

from docgemma import paths
from docgemma.errors import ConfigError, ModelError, UsageError
from docgemma.llm import load, load_llm, medgemma
from docgemma.llm.base import GenConfig, Prompt
from docgemma.llm.compute import compute_type
from docgemma.settings import Settings
from tests import models


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path)


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_imports_no_back_end():
    heavy = "('torch', 'transformers', 'xllamacpp', 'langgraph', 'outlines', 'httpx', 'jinja2', 'numpy')"
    assert run(f"import docgemma.llm, sys; print([m for m in {heavy} if m in sys.modules])").strip() == "[]"


def test_without_a_gpu_the_default_is_the_edge_model_and_torch_stays_out():
    code = "from docgemma.llm import load_llm; import sys; llm = load_llm(); print(llm.name, 'torch' in sys.modules)"
    if medgemma.nvidia_device():
        pytest.skip("this machine has a GPU")
    assert run(code).strip() == "edge False"


@pytest.mark.parametrize(
    ("gpu", "weights", "name"),
    [(True, True, "medgemma"), (True, False, "edge"), (False, True, "edge"), (False, False, "edge")],
)
def test_medgemma_is_the_default_only_with_a_gpu_and_weights(monkeypatch, settings, gpu, weights, name):
    monkeypatch.setattr(load, "nvidia_device", lambda: gpu)
    if weights:
        folder = settings.home / "models" / "medgemma"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
    monkeypatch.setattr(medgemma, "KAGGLE_INPUT", settings.home / "no-kaggle")
    monkeypatch.setenv("HF_HUB_CACHE", str(settings.home / "no-cache"))
    assert load.default_model(settings) == name


def test_kaggles_model_folder_is_found_and_1_5_preferred(monkeypatch, tmp_path):
    monkeypatch.setattr(medgemma, "KAGGLE_INPUT", tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "no-cache"))
    assert medgemma.find_weights(tmp_path / "home") is None
    for folder in ("medgemma/transformers/medgemma-4b-it/1", "medgemma/transformers/medgemma-1.5-4b-it/1", "bert/1"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "config.json").write_text("{}")
    assert medgemma.find_weights(tmp_path / "home") == tmp_path / "medgemma/transformers/medgemma-1.5-4b-it/1"


def test_a_complete_download_in_the_hub_cache_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr(medgemma, "KAGGLE_INPUT", tmp_path / "no-kaggle")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--google--medgemma-1.5-4b-it" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    assert medgemma.find_weights(tmp_path / "home") is None  # the weights are missing
    (snapshot / "model-00001-of-00002.safetensors").write_bytes(b"")
    assert medgemma.find_weights(tmp_path / "home") == snapshot


@pytest.mark.parametrize("name", ["gpt-9", "Edge", "nowhere.gguf", "edge model", "../x"])
def test_an_unknown_model_is_one_line_with_what_is_possible(settings, name):
    with pytest.raises(UsageError) as caught:
        load_llm(name, settings)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.line()
    assert "edge, medgemma, server" in caught.value.line()


def test_a_missing_projector_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match=r"nowhere\.gguf"):
        load_llm(str(models.gemma_gguf()), Settings(home=tmp_path, mmproj=tmp_path / "nowhere.gguf"))


def test_a_file_that_is_no_model_is_a_model_error(settings):
    path = settings.home / "broken.gguf"
    path.write_bytes(b"GGUF but no more")
    with pytest.raises(ModelError):
        load_llm(str(path), settings)


def test_a_server_without_an_address_says_which_setting(settings):
    with pytest.raises(ConfigError, match="address") as caught:
        load_llm("server", settings)
    assert "DOCGEMMA_LLM_URL" in caught.value.hint


def test_the_argument_beats_the_setting(settings):
    with pytest.raises(UsageError, match="argument"):
        load_llm("argument", settings.model_copy(update={"model": "setting"}))
    with pytest.raises(UsageError, match="setting"):
        load_llm(None, settings.model_copy(update={"model": "setting"}))


def test_the_edge_model_writes_nothing_and_says_so(settings):
    llm = load_llm("edge", settings)
    assert (llm.name, llm.profile, llm.vision) == ("edge", "edge", False)
    with pytest.raises(ModelError, match="writes no text"):
        llm.text(Prompt("Hi"), GenConfig(max_tokens=4), node="synthesize")


def test_a_missing_data_file_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCGEMMA_DATA", str(tmp_path))
    with pytest.raises(ConfigError, match="missing"):
        paths.data_file("edge", "reader.npz")
    (tmp_path / "edge").mkdir()
    (tmp_path / "edge" / "reader.npz").write_bytes(b"x")
    assert paths.data_file("edge", "reader.npz") == tmp_path / "edge" / "reader.npz"
    monkeypatch.setenv("DOCGEMMA_DATA", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="no data folder"):
        paths.data_root()


@pytest.mark.torch
@pytest.mark.parametrize("name", ["medgemma", "nobody/no-such-model"])
def test_a_model_that_must_be_fetched_says_so_without_a_network(monkeypatch, settings, name):
    pytest.importorskip("torch")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for proxy in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(proxy, raising=False)
    monkeypatch.setattr("docgemma.llm.hf_load.find_weights", lambda home: None)
    lines: list[str] = []
    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        load_llm(name, settings, lines.append)
    assert "network" in caught.value.hint
    assert "float32" in lines[0] or "bfloat16" in lines[0]  # the compute type, and why, is said before anything loads


@pytest.mark.parametrize(
    ("device", "capability", "name"),
    [
        ("cpu", None, "float32"),
        ("cuda", (6, 0), "float32"),  # P100
        ("cuda", (7, 5), "float32"),  # T4
        ("cuda", (8, 0), "bfloat16"),  # A100
        ("cuda", (8, 9), "bfloat16"),  # L4
        ("cuda", (9, 0), "bfloat16"),
    ],
)
def test_the_compute_type_is_never_float16(device, capability, name):
    chosen = compute_type(device, capability)
    assert chosen.name == name
    assert chosen.why


@pytest.mark.parametrize(("device", "capability"), [("cuda", None), ("mps", None), ("", None)])
def test_an_unknown_device_is_an_error_not_a_guess(device, capability):
    with pytest.raises(ValueError):
        compute_type(device, capability)


def test_the_package_is_beside_its_data():
    assert paths.PACKAGE.parent == Path(__file__).resolve().parent.parent
