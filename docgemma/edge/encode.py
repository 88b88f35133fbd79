"""Examples as tensors: one row a turn, its calls as branches of a tree that attention and positions respect."""

from dataclasses import dataclass

import numpy as np

from docgemma.edge.examples import Example

IGNORE = -100


@dataclass(frozen=True)
class Row:
    """One turn. `ids`, `positions`, `segment`: (T,) ints; `cut`: trunk tokens that each token's branch sees (T,);
    `target`: next token to learn at each place, or IGNORE (T,); `weight`: of each target (T,)."""

    ids: np.ndarray
    positions: np.ndarray
    segment: np.ndarray
    cut: np.ndarray
    target: np.ndarray
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)


def encode(example: Example, tokenizer, task_weight: dict[str, float]) -> Row:
    """Tokens of the trunk, then of each branch. A branch's loss is its completion's, weighted by 1/sqrt(length)."""
    trunk = tokenizer(example.trunk, add_special_tokens=False, return_offsets_mapping=True)
    ids, ends = list(trunk["input_ids"]), [end for _, end in trunk["offset_mapping"]]
    positions, segment = list(range(len(ids))), [0] * len(ids)
    cuts, target, weight = [len(ids)] * len(ids), [IGNORE] * len(ids), [0.0] * len(ids)
    for number, branch in enumerate(example.branches, 1):
        seen = sum(end <= branch.cut for end in ends)
        prompt = tokenizer(branch.prompt, add_special_tokens=False)["input_ids"]
        answer = tokenizer(branch.completion, add_special_tokens=False)["input_ids"]
        own = prompt + answer
        share = task_weight.get(branch.task, 1.0) / len(answer) ** 0.5
        ids += own
        positions += range(seen, seen + len(own))
        segment += [number] * len(own)
        cuts += [seen] * len(own)
        target += [IGNORE] * (len(prompt) - 1) + answer + [IGNORE]
        weight += [0.0] * (len(prompt) - 1) + [share] * len(answer) + [0.0]
    return Row(*(np.array(item) for item in (ids, positions, segment, cuts, target, weight)))


def batches(rows: list[Row], tokens: int, rng) -> list[list[Row]]:
    """Rows of like length together, about `tokens` a batch, in random order."""
    order = sorted(range(len(rows)), key=lambda at: (len(rows[at]), rng.random()))
    made: list[list[Row]] = []
    for at in order:
        if made and (len(made[-1]) + 1) * max(len(rows[at]), len(made[-1][0])) <= tokens:
            made[-1].append(rows[at])
        else:
            made.append([rows[at]])
    rng.shuffle(made)
    return made


def collate(batch: list[Row]):
    """Padded tensors: ids, positions, mask (B, 1, T, T) additive, target, weight."""
    import torch

    length = max(len(row) for row in batch)
    pad = lambda values, fill, kind: torch.tensor(  # noqa: E731
        np.stack([np.pad(item, (0, length - len(item)), constant_values=fill) for item in values]), dtype=kind
    )
    ids = pad([row.ids for row in batch], 2, torch.long)
    positions = pad([row.positions for row in batch], 0, torch.long)
    segment = pad([row.segment for row in batch], -1, torch.long)
    cut = pad([row.cut for row in batch], 0, torch.long)
    at = torch.arange(length)
    causal = at[None, :] <= at[:, None]
    same = segment[:, :, None] == segment[:, None, :]
    trunk = (segment[:, None, :] == 0) & (at[None, None, :] < cut[:, :, None])
    allowed = causal[None] & (same | trunk)
    mask = torch.zeros(allowed.shape, dtype=torch.bfloat16).masked_fill(~allowed, torch.finfo(torch.bfloat16).min)
    target = pad([row.target for row in batch], IGNORE, torch.long)
    weight = pad([row.weight for row in batch], 0.0, torch.float32)
    return ids, positions, mask[:, None], target, weight
