"""The reader: its tokenizer, its encoder against a second implementation, spans, load errors, several threads."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from docgemma.errors import ConfigError
from docgemma.paths import data_file
from docgemma.reading.encoder import MAX_PIECES, UNKNOWN, Encoder, WordPiece
from docgemma.reading.labels import ASKS, CHANNELS, POLARITY
from docgemma.reading.reader import Reader
from tests.rules_help import the_reader

VOCABULARY = ["[PAD]", "jose", "gar", "##cia", "'", "s", "k", "+", "-", "chart", "x", "ray"]


def words(text: str) -> list[tuple[str, str]]:
    """Each piece, and the place of the text it stands for."""
    found = WordPiece(VOCABULARY)(text)
    names = [VOCABULARY[piece] if piece != UNKNOWN else "[UNK]" for piece in found.ids]
    return [(name, text[start:end]) for name, (start, end) in zip(names, found.places, strict=True)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("José García's chart", [("jose", "José"), ("gar", "Gar"), ("##cia", "cía"), ("'", "'"), ("s", "s"),
                                 ("chart", "chart")]),
        ("JOSE", [("jose", "JOSE")]),
        ("Jose\u0301 chart", [("jose", "Jose"), ("chart", "chart")]),  # the accent as a character of its own
        ("k+", [("k", "k"), ("+", "+")]),
        ("x-ray", [("x", "x"), ("-", "-"), ("ray", "ray")]),
        ("quartz chart", [("[UNK]", "quartz"), ("chart", "chart")]),
        ("  \t\n", []),
        ("", []),
        ("\u200f\x00", []),
    ],
)  # fmt: skip
def test_a_text_becomes_pieces_that_know_their_place(text: str, pieces: list[tuple[str, str]]) -> None:
    assert words(text) == pieces


def test_a_text_of_any_length_is_cut_not_refused() -> None:
    assert len(WordPiece(VOCABULARY)("chart " * 5000).ids) == MAX_PIECES
    assert the_reader().read("chart " * 5000).asks


def test_the_encoder_gives_what_torch_gives() -> None:
    """The same weights in torch's own BERT layers, written here a second time."""
    torch = pytest.importorskip("torch")
    encoder = the_reader().encoder
    ids = [101, *encoder.pieces("any allergies for José García?").ids, 102]
    mine = encoder._states(np.array(ids), np.zeros(len(ids), int))
    assert np.abs(mine - by_torch(torch, encoder, ids)).max() < 0.05  # its gelu is the tanh form


def by_torch(torch, encoder: Encoder, ids: list[int]) -> np.ndarray:
    functional, weights = torch.nn.functional, encoder.weights

    def linear(name: str, values):
        return values @ torch.from_numpy(weights[f"{name}.weight"]) + torch.from_numpy(weights[f"{name}.bias"])

    def norm(name: str, values):
        scale, bias = (torch.from_numpy(weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return functional.layer_norm(values, values.shape[-1:], scale, bias, 1e-12)

    table, scale = weights["embeddings.word_embeddings.weight"]
    states = torch.from_numpy(table[ids].astype(np.float32) * scale[ids])
    states = states + torch.from_numpy(weights["embeddings.position_embeddings.weight"][: len(ids)])
    states = norm(
        "embeddings.LayerNorm", states + torch.from_numpy(weights["embeddings.token_type_embeddings.weight"][0])
    )
    for layer in range(6):
        name = f"layer.{layer}."
        heads = [
            linear(f"{name}attention.self.{part}", states).reshape(1, len(ids), 12, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        ]
        mixed = functional.scaled_dot_product_attention(*heads)[0].transpose(0, 1).reshape(len(ids), -1)
        states = norm(f"{name}attention.output.LayerNorm", states + linear(f"{name}attention.output.dense", mixed))
        inner = functional.gelu(linear(f"{name}intermediate.dense", states))
        states = norm(f"{name}output.LayerNorm", states + linear(f"{name}output.dense", inner))
    return states.numpy()


@pytest.mark.parametrize(
    ("text", "channel", "spans"),
    [
        ("Show me the chart of Maria Garcia", "name", ["Maria Garcia"]),
        ("what is John Smith's potassium", "name", ["John Smith"]),
        ("what is John Smith's potassium", "measure", ["potassium"]),
        ("labs for abc-123", "id", ["abc-123"]),
        ("Prescribe metformin 500 mg twice daily for abc-123", "rx.drug", ["metformin"]),
        ("Prescribe metformin 500 mg twice daily for abc-123", "rx.dose", ["500 mg"]),
        ("Prescribe metformin 500 mg twice daily for abc-123", "rx.freq", ["twice daily"]),
        ("Document that abc-123 is allergic to penicillin, it gave him hives", "alg.subst", ["penicillin"]),
        ("Document that abc-123 is allergic to penicillin, it gave him hives", "alg.react", ["hives"]),
        ("interactions of warfarin and aspirin", "drug", ["warfarin", "aspirin"]),
    ],
)
def test_spans_are_whole_words_of_the_text(text: str, channel: str, spans: list[str]) -> None:
    found = the_reader().read(text).spans.get(channel, [])
    assert [span.text for span in found] == spans
    assert all(text[span.start : span.end] == span.text and 0 <= span.score <= 1 for span in found)


@pytest.mark.parametrize("text", ["", " ", "?", "\u200f", "🙂", "a" * 4000, "\n\n\t", "%s {x} \\"])
def test_any_text_can_be_read(text: str) -> None:
    found = the_reader().read(text)
    assert set(found.asks) == set(ASKS) and set(found.polarity) == set(POLARITY) and set(found.spans) <= set(CHANNELS)
    assert abs(sum(found.polarity.values()) - 1) < 1e-3


def test_what_was_said_before_and_who_is_open_are_read_too() -> None:
    alone, behind = the_reader().read("and the dose?"), the_reader().read("and the dose?", before="What are his meds?")
    assert alone.asks != behind.asks


def test_several_threads_read_the_same() -> None:
    texts = [f"labs of patient {number}" for number in range(40)]
    alone = [the_reader().read(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(the_reader().read, texts)) == alone


@pytest.mark.parametrize("content", [None, b"", b"no weights at all", b"PK\x03\x04 cut off"])
def test_missing_or_damaged_weights_are_one_clear_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "reader.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="cannot be read"):
        Reader(path)


def test_weights_that_were_cut_off_are_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "reader.npz"
    path.write_bytes(data_file("edge", "reader.npz").read_bytes()[:1_000_000])
    with pytest.raises(ConfigError, match="cannot be read"):
        Reader(path)


def test_the_weights_stay_below_30_megabytes() -> None:
    assert data_file("edge", "reader.npz").stat().st_size < 30_000_000
