"""The adapter added to the weights: the same numbers as the gguf package's, one file, whatever happens meanwhile."""

import logging
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docgemma.errors import ConfigError, ModelError
from docgemma.llm.base import GenConfig, Prompt
from docgemma.llm.gguf_header import read_header, read_tensors
from docgemma.llm.llamacpp import LlamaCppLLM
from docgemma.llm.load import edge_adapter, edge_weights
from docgemma.llm.merge import BLOCK, READ, merged, quantize
from tests import models

np = pytest.importorskip("numpy")
QUESTION = Prompt("Q: Find recruiting trials for gout\nintent")
SHORT = GenConfig(max_tokens=12)


@pytest.fixture(scope="module")
def folder() -> Path:
    return models.scratch() / "merged"


def test_it_holds_what_the_gguf_package_makes_of_the_two_files(folder):
    gguf = pytest.importorskip("gguf")
    path = merged(edge_weights(), edge_adapter(), folder)
    base = {tensor.name: tensor for tensor in gguf.GGUFReader(str(edge_weights())).tensors}
    low = gguf.GGUFReader(str(edge_adapter()))
    sides = {tensor.name: tensor.data.astype("f4") for tensor in low.tensors}
    alpha = float(low.fields["adapter.lora.alpha"].contents())
    found = {tensor.name: tensor for tensor in gguf.GGUFReader(str(path)).tensors}
    assert list(found) == list(base)
    for name, tensor in base.items():
        if f"{name}.lora_a" not in sides:
            assert (found[name].data == tensor.data).all(), name  # the embedding and the norms, as they were
            continue
        a, b = sides[f"{name}.lora_a"], sides[f"{name}.lora_b"]
        wanted = gguf.quants.dequantize(tensor.data, tensor.tensor_type) + alpha / len(a) * (b @ a)
        got = gguf.quants.dequantize(found[name].data, found[name].tensor_type)
        step = np.abs(wanted).reshape(-1, BLOCK).max(axis=1).repeat(BLOCK).reshape(wanted.shape) / 127
        assert (np.abs(got - wanted) <= 0.57 * step + 1e-6).all(), name  # half a step, and the scale's own rounding


def test_the_metadata_is_the_bases_but_for_the_files_type(folder):
    path = merged(edge_weights(), edge_adapter(), folder)
    before, after = read_header(edge_weights()), read_header(path)
    changed = {key for key in before.values if before.values[key] != after.values[key]}
    assert (changed, after.values["general.file_type"]) == ({"general.file_type"}, 7)
    assert (after.control_tokens, after.bos) == (before.control_tokens, before.bos)


def test_it_answers_as_the_adapter_at_run_time_does(folder):
    ours = LlamaCppLLM("edge", edge_weights(), adapter=edge_adapter(), merge_into=folder, profile="edge", context=512)
    other = LlamaCppLLM("edge", edge_weights(), adapter=edge_adapter(), profile="edge", context=512)
    try:
        assert ours.merged and not other.merged
        said = ours.text(QUESTION, SHORT, node="x").value
        assert (
            said
            == other.text(QUESTION, SHORT, node="x").value
            != models.smollm2().text(QUESTION, SHORT, node="x").value
        )
    finally:
        ours.close()
        other.close()


def test_it_is_made_once_and_anew_for_another_adapter(folder, tmp_path):
    path = merged(edge_weights(), edge_adapter(), folder)
    made = path.stat().st_ino
    assert merged(edge_weights(), edge_adapter(), folder) == path and path.stat().st_ino == made
    changed = bytearray(edge_adapter().read_bytes())
    changed[-2] ^= 1
    (tmp_path / "adapter.gguf").write_bytes(changed)
    assert merged(edge_weights(), tmp_path / "adapter.gguf", tmp_path) not in (path, tmp_path / path.name)


def test_a_folder_that_cannot_be_written_costs_speed_and_says_so(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match="cannot be stored"):
        merged(edge_weights(), edge_adapter(), tmp_path / "file")
    with caplog.at_level(logging.WARNING):
        llm = LlamaCppLLM("edge", edge_weights(), adapter=edge_adapter(), merge_into=tmp_path / "file", profile="edge")
    assert "DOCGEMMA_HOME" in caplog.text and "slower" in caplog.text
    assert llm.describe()["merged"] is None and llm.text(QUESTION, SHORT, node="x").value
    llm.close()


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        merged(edge_weights(), edge_adapter(), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_killed_merge_is_no_half_model_and_is_swept_up_later(tmp_path):
    code = (
        "import os, time; from pathlib import Path; import docgemma.llm.merge as m\n"
        "m.os.fsync = lambda number: (print('written', flush=True), time.sleep(60))\n"
        f"m.merged(Path({str(edge_weights())!r}), Path({str(edge_adapter())!r}), Path({str(tmp_path)!r}))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().strip() == "written"
        process.send_signal(signal.SIGKILL)
    (left,) = tmp_path.iterdir()
    assert left.suffix == ".part"
    merged(edge_weights(), edge_adapter(), tmp_path)
    assert left.exists()  # it could still be another process's
    hours_ago = time.time() - 7200
    os.utime(left, (hours_ago, hours_ago))
    next(tmp_path.glob("*.gguf")).unlink()
    merged(edge_weights(), edge_adapter(), tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".gguf"]


def test_several_processes_at_once_agree_on_one_file(tmp_path):
    code = (
        "from pathlib import Path; import docgemma.llm.merge as m\n"
        f"print(m.merged(Path({str(edge_weights())!r}), Path({str(edge_adapter())!r}), Path({str(tmp_path)!r})).name)"
    )
    at_once = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = {process.communicate()[0].strip() for process in at_once}
    assert {path.name for path in tmp_path.iterdir()} == said and len(said) == 1
    read_tensors(next(tmp_path.iterdir()))


def test_files_that_do_not_belong_together_are_a_typed_error(tmp_path):
    with pytest.raises(ModelError, match="does not belong"):
        merged(models.gemma_gguf(), edge_adapter(), tmp_path)
    (tmp_path / "none.gguf").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="not a readable GGUF"):
        merged(edge_weights(), tmp_path / "none.gguf", tmp_path)
    (tmp_path / "cut.gguf").write_bytes(edge_adapter().read_bytes()[:-1000])
    with pytest.raises(ModelError, match="cut short"):
        merged(edge_weights(), tmp_path / "cut.gguf", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"none.gguf", "cut.gguf"}


@pytest.mark.parametrize("shapes", [{"a": (4, 576)}, {"a": (4, 64), "b": (576, 4)}, {"a": (4, 576), "b": (576, 8)}])
def test_an_adapter_of_other_sizes_is_a_typed_error(tmp_path, shapes):
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(tmp_path / "adapter.gguf", "llama")
    for side, shape in shapes.items():
        writer.add_tensor(f"blk.0.attn_q.weight.lora_{side}", np.ones(shape, "f4"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match=r"does not belong.*blk.0.attn_q.weight"):
        merged(edge_weights(), tmp_path / "adapter.gguf", tmp_path)


def test_a_missing_adapter_is_a_typed_error(tmp_path):
    with pytest.raises(ModelError, match="not a readable GGUF"):
        merged(edge_weights(), tmp_path / "none.gguf", tmp_path)


def test_a_table_that_promises_too_much_is_a_typed_error(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 2**40, 0))
    with pytest.raises(ModelError, match="not a readable GGUF"):
        read_tensors(path)


numbers = st.floats(-8, 8, width=32)


@settings(max_examples=50)
@given(st.lists(st.lists(numbers, min_size=BLOCK, max_size=BLOCK), min_size=1, max_size=4))
def test_eight_bits_keep_a_weight_within_half_a_step(rows):
    values = np.array(rows, dtype="f4")
    back = READ[8](quantize(values)).reshape(values.shape)
    step = np.abs(values).max(axis=1, keepdims=True) / 127
    assert (np.abs(back - values) <= 0.57 * step + 1e-6).all()
