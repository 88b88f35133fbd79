"""Trains the LoRA adapter on generated turns, on a CPU, within the hour. Progress goes to stderr."""

import math
import random
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from docgemma.edge.encode import IGNORE, Row, batches, collate, encode
from docgemma.edge.export import write_adapter
from docgemma.edge.generate import heldout_questions, make
from docgemma.edge.lora import add_lora

TASK_WEIGHT = {"answer": 1.0, "tool": 1.3, "intent": 1.3}


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the weights. Stored beside them."""

    seed: int = 20261121
    examples: int = 9000
    passes: int = 2
    rank: int = 16
    alpha: int = 32
    learning_rate: float = 8e-4
    warm_up: float = 0.04
    batch_tokens: int = 1600
    max_minutes: float = 55.0
    checkpoint_minutes: float = 5.0


def train(recipe: Recipe, out: Path, home: Path, log=None) -> dict:
    """Train and write `out` (a GGUF LoRA); every few minutes too, so that a run that is cut still yields an adapter.

    Returns:
        Figures of the run: steps, tokens, seconds, loss at the end, examples, skipped arguments.
    """
    import torch

    log = log or (lambda line: print(line, file=sys.stderr, flush=True))
    torch.manual_seed(recipe.seed)
    model, tokenizer = load_base(home, recipe)
    start = time.monotonic()
    rows, figures = prepare(recipe, tokenizer, log)
    rng = random.Random(recipe.seed)
    plan = [batch for _ in range(recipe.passes) for batch in batches(rows, recipe.batch_tokens, rng)]
    spent = time.monotonic() - start
    log(f"{len(rows)} turns, {sum(map(len, rows))} tokens a pass, {len(plan)} steps; prepared in {spent:.0f} s")
    weights = [item for item in model.parameters() if item.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=recipe.learning_rate, weight_decay=0.0)
    done = _run(model, optimizer, weights, plan, recipe, out, log)
    write_adapter(model, out, recipe.alpha)
    return figures | done | {"recipe": asdict(recipe)}


def load_base(home: Path, recipe: Recipe):
    """The dequantized base with LoRA, and its tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from docgemma.llm.convert import as_safetensors
    from docgemma.llm.load import edge_weights

    folder = as_safetensors(edge_weights(), home, lambda line: print(line, file=sys.stderr))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    # eager attention is faster than SDPA on short rows
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    base.config.use_cache = False
    return add_lora(base, recipe.rank, recipe.alpha, recipe.seed), tokenizer


def prepare(recipe: Recipe, tokenizer, log) -> tuple[list[Row], dict]:
    """The training rows of a recipe, and how they were made."""
    examples, skipped = make(recipe.examples, recipe.seed, exclude=heldout_questions(), log=log)
    rows = [encode(example, tokenizer, TASK_WEIGHT) for example in examples]
    tasks: dict[str, int] = {}
    for example in examples:
        for branch in example.branches:
            tasks[branch.task] = tasks.get(branch.task, 0) + 1
    return rows, {"turns": len(rows), "calls": tasks, "skipped_arguments": dict(skipped.most_common(12))}


def _run(model, optimizer, weights, plan, recipe: Recipe, out: Path, log) -> dict:
    import torch

    model.train()
    start = last = time.monotonic()
    done, seen, recent, losses = 0, 0, [], []
    total = len(plan)
    for step, batch in enumerate(plan):
        share = max(step / total, (time.monotonic() - start) / (recipe.max_minutes * 60))
        if share >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * rate(share, recipe.warm_up)
        loss = _loss(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        done += 1
        seen += sum(map(len, batch))
        recent.append(float(loss.detach()))
        if done % 20 == 0:
            losses.append(sum(recent) / len(recent))
            spent = time.monotonic() - start
            log(f"step {done}/{total} loss {losses[-1]:.4f} tokens/s {seen / spent:.0f} minutes {spent / 60:.1f}")
            recent = []
        if time.monotonic() - last > recipe.checkpoint_minutes * 60:
            write_adapter(model, out.with_suffix(".part.gguf"), recipe.alpha)
            last = time.monotonic()
    spent = time.monotonic() - start
    return {
        "steps": done,
        "planned": total,
        "tokens": seen,
        "seconds": round(spent),
        "losses": [round(item, 4) for item in losses[::10]],
    }


def rate(share: float, warm_up: float) -> float:
    """Learning rate factor after this share of the run: linear warm-up, then a cosine to 5 %."""
    if share < warm_up:
        return max(share / warm_up, 0.01)
    return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (share - warm_up) / (1 - warm_up)))


def _loss(model, batch: list[Row]):
    """Weighted cross entropy at the completion's places only; the head is applied nowhere else."""
    import torch

    ids, positions, mask, target, weight = collate(batch)
    hidden = model.model(input_ids=ids, position_ids=positions, attention_mask=mask, use_cache=False)[0]
    learnt = target != IGNORE
    logits = torch.nn.functional.linear(hidden[learnt], model.head)
    losses = torch.nn.functional.cross_entropy(logits.float(), target[learnt], reduction="none")
    return (losses * weight[learnt]).sum() / weight[learnt].sum()
