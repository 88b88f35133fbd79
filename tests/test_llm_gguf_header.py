"""A GGUF file's header, of real files and of broken ones."""

import struct

import pytest

from docgemma.errors import ModelError
from docgemma.llm.gguf_header import read_header
from tests import models


def test_the_edge_models_header():
    header = read_header(models.smollm2_weights())
    assert (header.architecture, header.context_length, header.bos) == ("llama", 8192, "<|im_start|>")
    assert {"<|im_start|>", "<|im_end|>", "<|endoftext|>"} <= set(header.control_tokens)
    assert "add_generation_prompt" in header.chat_template


def test_gemmas_header():
    header = read_header(models.gemma_gguf())
    assert (header.architecture, header.bos, header.chat_template) == ("gemma3", "<bos>", None)
    assert {"<start_of_turn>", "<end_of_turn>", "<unused94>"} <= set(header.control_tokens)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a model",
        b"GGUF",
        b"GGUF" + struct.pack("<IQQ", 3, 0, 5),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60),
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**62) + b"key",
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 3) + b"key" + struct.pack("<I", 99),
    ],
)
def test_a_broken_file_is_a_typed_error(tmp_path, content):
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="not a readable GGUF"):
        read_header(path)


def test_a_cut_download_is_a_typed_error(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(models.smollm2_weights().read_bytes()[:100_000])
    with pytest.raises(ModelError):
        read_header(path)
