"""A turn as a tree: each call is computed as if it stood alone behind its share of the turn."""

import random

import numpy as np
import pytest

from docgemma.edge.encode import IGNORE, batches, collate, encode
from docgemma.edge.examples import Branch, Example
from docgemma.edge.train import rate

pytestmark = pytest.mark.torch


class Letters:
    """A tokenizer of single letters."""

    def __call__(self, text, add_special_tokens, return_offsets_mapping=False):
        ids = [ord(letter) % 97 for letter in text]
        return {"input_ids": ids, "offset_mapping": [(at, at + 1) for at in range(len(text))]}


@pytest.fixture(scope="module")
def model():
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=97, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, attn_implementation="eager",
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def example() -> Example:
    return Example("trunk of the turn", [Branch("tool", 5, "\nx:", "one"), Branch("args", 17, "\nlong:", "another")])


def test_every_branch_gets_the_logits_that_it_would_get_alone(model):
    import torch

    row = encode(example(), Letters(), {})
    ids, positions, mask, *_ = collate([row])
    with torch.no_grad():
        tree = model(input_ids=ids, position_ids=positions, attention_mask=mask.float()).logits[0]
        for number, branch in enumerate(example().branches, 1):
            alone = Letters()(example().trunk[: branch.cut] + branch.prompt + branch.completion, False)["input_ids"]
            expected = model(input_ids=torch.tensor([alone])).logits[0, branch.cut :]
            found = tree[torch.tensor(row.segment == number)]
            assert torch.allclose(found, expected, atol=1e-4)


def test_only_completions_are_learnt_and_each_branch_weighs_by_its_length():
    row = encode(example(), Letters(), {"args": 2.0})
    learnt = row.target != IGNORE
    assert learnt.sum() == len("one") + len("another")
    assert row.weight[~learnt].sum() == 0
    assert row.weight.sum() == pytest.approx(3 / 3**0.5 + 2 * 7 / 7**0.5)


def test_padding_is_neither_seen_nor_learnt():
    short = encode(Example("t", [Branch("tool", 1, "\n", "a")]), Letters(), {})
    long = encode(example(), Letters(), {})
    ids, _, mask, target, weight = collate([short, long])
    assert ids.shape == target.shape == weight.shape == (2, len(long))
    assert (target[0, len(short) :] == IGNORE).all() and weight[0, len(short) :].sum() == 0
    assert (mask[0, 0, : len(short), len(short) :] < -1e30).all()


def test_batches_hold_every_row_once_and_about_the_tokens_asked_for():
    rows = [encode(Example("t" * (1 + number % 40), []), Letters(), {}) for number in range(200)]
    made = batches(rows, 100, random.Random(1))
    assert sorted(map(id, (row for batch in made for row in batch))) == sorted(map(id, rows))
    assert all(len(batch) * max(map(len, batch)) <= 100 for batch in made)


def test_the_learning_rate_warms_up_and_falls():
    rates = [rate(share, 0.04) for share in np.linspace(0, 1, 101)]
    assert rates[0] < 0.05 and max(rates) == pytest.approx(1.0) and rates[-1] == pytest.approx(0.05)
    assert rates[5:] == sorted(rates[5:], reverse=True)
