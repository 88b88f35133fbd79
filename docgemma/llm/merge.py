"""A GGUF LoRA added to its base weights, once, as a file of 8-bit weights.

Applied at run time an adapter costs two more small products for every matrix of every step, on a CPU almost as much as
the matrix itself. Four bits, what the base has, would round away what was learnt; eight do not. Blocks as in ggml:
https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h
"""

import os
import struct
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from docgemma.errors import ConfigError, ModelError
from docgemma.llm.gguf_header import Tensor, TensorTable, aligned, alignment, read_tensors
from docgemma.llm.made import PART, fingerprint, sweep, used

F32, F16, Q4_1, Q8_0 = 0, 1, 3, 8
BLOCK = 32  # weights that share a scale
BYTES = {F32: 4 * BLOCK, F16: 2 * BLOCK, Q4_1: 20, Q8_0: 34}  # of a block
FILE_TYPE, ALL_Q8_0 = "general.file_type", 7


def merged(weights: Path, adapter: Path, folder: Path) -> Path:
    """The base weights with the adapter added, as a GGUF file in `folder`, made on the first call (about 2 s, 145 MB).

    Args:
        weights: a GGUF file whose adapted tensors are F32, F16, Q4_1 or Q8_0.
        adapter: a GGUF LoRA for it.
        folder: made where it is missing. The file's name says which weights and which adapter it was made of.

    Raises:
        ModelError: a file is unreadable, or the two do not belong together.
        ConfigError: the folder cannot be written.
    """
    low = read_tensors(adapter)
    target = folder / f"{weights.stem}-{fingerprint(weights, adapter.read_bytes())}.gguf"
    if target.is_file():
        return used(target)
    base = read_tensors(weights)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder, weights.stem)
        number, name = tempfile.mkstemp(prefix=f"{weights.stem}-", suffix=PART, dir=folder)
        try:
            with open(number, "wb") as file:
                _write(file, base, weights, _Lora(low, adapter))
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)
            os.replace(name, target)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"The edge model cannot be stored in {folder} ({error}).", hint="Set DOCGEMMA_HOME."
        ) from error
    return target


class _Lora:
    """What an adapter adds to a tensor: alpha / rank * B A, and B A where no alpha is given (as llama.cpp reads it)."""

    def __init__(self, table: TensorTable, path: Path):
        self.alpha = float(table.header.values.get("adapter.lora.alpha", 0))
        self.data = _mapped(path)
        self.sides = {tensor.name: tensor for tensor in table.tensors}

    def targets(self) -> set[str]:
        return {name.removesuffix(".lora_a").removesuffix(".lora_b") for name in self.sides}

    def fits(self, tensor: Tensor) -> bool:
        a, b = (self.sides.get(f"{tensor.name}.lora_{side}") for side in "ab")
        if not (a and b) or {len(a.shape), len(b.shape), len(tensor.shape)} != {2}:
            return False
        return (a.shape[0], b.shape[1], a.shape[1]) == (*tensor.shape, b.shape[0])

    def added(self, name: str) -> Any:
        a, b = (_values(self.data, self.sides[f"{name}.lora_{side}"]) for side in "ab")
        return (self.alpha / len(a) if self.alpha else 1) * (b @ a)


def _write(file: Any, base: TensorTable, weights: Path, lora: _Lora) -> None:
    data, changed = _mapped(weights), lora.targets()
    fitting = {tensor.name for tensor in base.tensors if tensor.name in changed and lora.fits(tensor)}
    if strangers := changed - fitting:
        raise ModelError(f"The adapter does not belong to {weights.name} ({min(strangers)}).", hint=ANOTHER)

    def content(tensor: Tensor) -> Any:
        if tensor.name not in changed:
            return _bytes(data, tensor)
        return quantize(_values(data, tensor) + lora.added(tensor.name))

    step, place, table = alignment(base.header), 0, bytearray()
    for tensor in base.tensors:
        kind = Q8_0 if tensor.name in changed else tensor.kind
        name = tensor.name.encode()
        table += struct.pack("<Q", len(name)) + name + struct.pack("<I", len(tensor.shape))
        table += struct.pack(f"<{len(tensor.shape)}QIQ", *tensor.shape, kind, place)
        place = aligned(place + _size(tensor, kind), step)
    head = _retyped(bytes(data[: base.at]))
    file.write(head + table)
    with ThreadPoolExecutor(2) as workers:  # numpy leaves Python's lock where it computes
        for piece in workers.map(content, base.tensors):
            file.write(b"\0" * (aligned(file.tell(), step) - file.tell()))
            file.write(piece)
    file.write(b"\0" * (aligned(file.tell(), step) - file.tell()))


def _retyped(head: bytes) -> bytes:
    """The metadata with the file's type said to be Q8_0."""
    key = struct.pack("<Q", len(FILE_TYPE)) + FILE_TYPE.encode() + struct.pack("<I", 4)
    at = head.find(key) + len(key)
    return head if at < len(key) else head[:at] + struct.pack("<I", ALL_Q8_0) + head[at + 4 :]


def _mapped(path: Path) -> Any:
    import numpy as np

    return np.memmap(path, dtype=np.uint8, mode="r")


def _size(tensor: Tensor, kind: int) -> int:
    weights = 1
    for length in tensor.shape:
        weights *= length
    if kind not in BYTES or (tensor.shape[0] % BLOCK and kind in (Q4_1, Q8_0)):
        raise ModelError(f"{tensor.name} has a type that cannot be merged ({kind}).", hint=ANOTHER)
    return weights * BYTES[kind] // BLOCK


ANOTHER = "Take the adapter and the weights that were made for each other."


def _values(data: Any, tensor: Tensor) -> Any:
    """A tensor's weights, float32, rows first."""
    return READ[tensor.kind](_bytes(data, tensor)).reshape(tensor.shape[::-1])


def _bytes(data: Any, tensor: Tensor) -> Any:
    raw = data[tensor.start : tensor.start + _size(tensor, tensor.kind)]
    if len(raw) < _size(tensor, tensor.kind):
        raise ModelError(f"The file that holds {tensor.name} was cut short.", hint="Fetch it again.")
    return raw


def _half(raw: Any) -> Any:
    return raw.view("<f2").astype("f4")


def _q4_1(raw: Any) -> Any:
    import numpy as np

    blocks = raw.reshape(-1, BYTES[Q4_1])
    scale, least = _half(blocks[:, :2].copy()), _half(blocks[:, 2:4].copy())
    steps = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
    return steps * scale + least


def _q8_0(raw: Any) -> Any:
    blocks = raw.reshape(-1, BYTES[Q8_0])
    return blocks[:, 2:].copy().view("i1") * _half(blocks[:, :2].copy())


READ: dict[int, Callable[[Any], Any]] = {F32: lambda raw: raw.view("<f4"), F16: _half, Q4_1: _q4_1, Q8_0: _q8_0}


def quantize(values: Any) -> Any:
    """Weights (float32, rows of a multiple of 32) as Q8_0: bytes, a block's scale (float16) before its 32 steps."""
    import numpy as np

    blocks = values.reshape(-1, BLOCK)
    scale = np.abs(blocks).max(axis=1, keepdims=True) / 127
    steps = np.rint(np.divide(blocks, scale, out=np.zeros_like(blocks), where=scale != 0)).astype("i1")
    return np.concatenate([scale.astype("<f2").view("u1"), steps.view("u1")], axis=1).reshape(-1)
