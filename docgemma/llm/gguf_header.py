"""Reads a GGUF file's metadata, and where its tensors are, in milliseconds.

The `gguf` package builds an object a token (3 s for the edge model, 11 s for Gemma's 262k vocabulary), which is longer
than loading the model; the few keys needed here are found by walking the header once.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docgemma.errors import ModelError

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
LENGTH = struct.Struct("<Q")  # stands before every string
CONTROL = 3  # tokenizer.ggml.token_type of tokens such as <|im_end|>
MAX_KEYS = 10_000
MAX_TENSORS = 100_000


@dataclass(frozen=True)
class GGUFHeader:
    """`values`: every scalar and string key. `control_tokens`: what must not be read out of a user's text."""

    values: dict[str, Any]
    control_tokens: tuple[str, ...]
    bos: str  # "" where the model has none

    @property
    def architecture(self) -> str:
        return self.values.get("general.architecture", "")

    @property
    def context_length(self) -> int:
        return int(self.values.get(f"{self.architecture}.context_length", 4096))

    @property
    def chat_template(self) -> str | None:
        return self.values.get("tokenizer.chat_template")


@dataclass(frozen=True)
class Tensor:
    """`shape` as GGUF has it: the length of a row first. `kind`: the type's number. `start`: its first byte's place."""

    name: str
    shape: tuple[int, ...]
    kind: int
    start: int


@dataclass(frozen=True)
class TensorTable:
    """`at`: the byte where the table begins, after the metadata."""

    header: GGUFHeader
    at: int
    tensors: tuple[Tensor, ...]


def read_header(path: Path) -> GGUFHeader:
    """Read a GGUF file's header.

    Raises:
        ModelError: not a GGUF file, or a cut one.
    """
    return _read(path, lambda walker: walker.header())


def read_tensors(path: Path) -> TensorTable:
    """Read a GGUF file's header and its table of tensors.

    Raises:
        ModelError: not a GGUF file, or a cut one.
    """
    return _read(path, lambda walker: walker.tensor_table())


def _read(path: Path, take: Callable[["_Walker"], Any]) -> Any:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return take(_Walker(data))
    except (OSError, ValueError, struct.error, UnicodeDecodeError, KeyError, IndexError) as error:
        raise ModelError(f"{path} is not a readable GGUF model ({error}).", hint="Download the file again.") from error


def alignment(header: GGUFHeader) -> int:
    """Bytes: where tensors begin are multiples of it."""
    return int(header.values.get("general.alignment", 32))


def aligned(place: int, step: int) -> int:
    """The first multiple of `step` that is not before `place`."""
    return -(-place // step) * step


class _Walker:
    def __init__(self, data: mmap.mmap):
        self.data, self.at = data, 0

    def header(self) -> GGUFHeader:
        if self.data[:4] != b"GGUF":
            raise ValueError("no GGUF mark")
        self.at = 4
        version, self.tensors, count = self._unpack("<I"), self._unpack("<Q"), self._unpack("<Q")
        if version < 2 or count > MAX_KEYS:
            raise ValueError(f"version {version}, {count} keys")
        values, tokens, types = {}, [], b""
        for _ in range(count):
            key, kind = self._string(), self._unpack("<I")
            if kind != ARRAY:
                values[key] = self._scalar(kind)
            elif key == "tokenizer.ggml.tokens":
                tokens = self._starts()
            elif key == "tokenizer.ggml.token_type":
                types = self._numbers()
            else:
                self._skip_array()

        def token(number: int) -> str:
            return self._text((tokens[number], tokens[number + 1] - LENGTH.size))

        control = tuple(token(i) for i, kind in enumerate(types) if kind == CONTROL)
        bos_id = values.get("tokenizer.ggml.bos_token_id")
        return GGUFHeader(values, control, token(bos_id) if bos_id is not None and bos_id + 1 < len(tokens) else "")

    def tensor_table(self) -> TensorTable:
        header, at = self.header(), self.at
        if self.tensors > MAX_TENSORS:
            raise ValueError(f"{self.tensors} tensors")
        found = []
        for _ in range(self.tensors):
            name, dimensions = self._string(), self._unpack("<I")
            shape = tuple(self._unpack("<Q") for _ in range(dimensions))
            found.append((name, shape, self._unpack("<I"), self._unpack("<Q")))
        first = aligned(self.at, alignment(header))
        return TensorTable(header, at, tuple(Tensor(*one[:3], first + one[3]) for one in found))

    def _unpack(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def _string(self) -> str:
        length = self._unpack("<Q")
        self.at += length
        return self._text((self.at - length, self.at))

    def _text(self, span: tuple[int, int]) -> str:
        return self.data[span[0] : span[1]].decode("utf-8")

    def _scalar(self, kind: int) -> Any:
        return self._string() if kind == STRING else self._unpack(f"<{SCALARS[kind]}")

    def _starts(self) -> list[int]:
        """Where each string of an array begins, its length left of it, and where one more would; past all of them."""
        kind, count = self._unpack("<I"), self._unpack("<Q")
        if kind != STRING:
            raise ValueError("an array of strings was expected")
        at, data, length_of = self.at + LENGTH.size, self.data, LENGTH.unpack_from
        starts = [at]
        for _ in range(count):
            at += length_of(data, at - LENGTH.size)[0] + LENGTH.size
            starts.append(at)
        self.at = at - LENGTH.size
        return starts

    def _numbers(self) -> tuple:
        kind, count = self._unpack("<I"), self._unpack("<Q")
        form = f"<{count}{SCALARS[kind]}"
        numbers = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return numbers

    def _skip_array(self) -> None:
        (kind,) = struct.unpack_from("<I", self.data, self.at)
        if kind == STRING:
            self._starts()
        else:
            self._numbers()
