"""What the edge commands do. Loading and writing only; the work is in `train.py`, `evaluate.py` and `generate.py`."""

import hashlib
import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from docgemma.edge import items
from docgemma.paths import data_root
from docgemma.settings import Settings

CARD = {"heldout-edge": "heldout", "heldout-rules": "heldout_rules", "heldout-base": "heldout_base"}


def train(args: Namespace) -> None:
    """Train, and write the adapter with its card."""
    from docgemma.edge.train import Recipe
    from docgemma.edge.train import train as run

    out = args.out or data_root() / "edge" / "adapter.gguf"
    figures = run(Recipe(**args.recipe), out, Settings().home)
    card = out.with_name("card.json")
    known = json.loads(card.read_text(encoding="utf-8")) if card.is_file() else {}
    known["training"], known["adapter_sha256"] = figures, sha256(out)
    known.pop("heldout", None)  # figures of another adapter
    card.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"Wrote {out} and {card}. Next: python -m docgemma.edge eval")


def evaluate(args: Namespace) -> None:
    from docgemma.edge.evaluate import Evaluation, report, save, summary, to_stderr

    settings = Settings(narrowing=not args.no_narrowing)
    if args.model == "rules":
        from docgemma.edge.baseline import RulesAlone

        run: Evaluation = RulesAlone()
    else:
        run = Evaluation(_load(args.model, args.adapter, settings), settings)
    marks = run.run(items.load(args.set), to_stderr)
    figures = summary(marks)
    name = f"{args.set}-{args.model}{'-wide' if args.no_narrowing else ''}"
    save(args.save or data_root() / "edge" / "results", name, marks, run.answers, figures)
    if not (args.save or args.adapter or args.no_narrowing) and name in CARD:
        _note_on_card(CARD[name], figures)
    print(json.dumps(figures, ensure_ascii=False) if args.json else report(figures))


def preview(args: Namespace) -> None:
    from docgemma.edge.generate import make

    examples, _ = make(args.count, args.seed)
    for example in examples:
        print(f"{'─' * 60}\n{example.trunk}")
        for branch in example.branches:
            print(f"  @{branch.cut} {branch.prompt!r} → {branch.completion!r}")


def _note_on_card(key: str, figures: dict[str, Any]) -> None:
    """The stored adapter's figures, beside its hash."""
    card = data_root() / "edge" / "card.json"
    known = json.loads(card.read_text(encoding="utf-8"))
    known[key] = {"rows": figures["rows"], "median_seconds": figures["median_seconds"]}
    card.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _load(model: str, adapter: Path | None, settings: Settings) -> Any:
    from docgemma.llm.llamacpp import LlamaCppLLM
    from docgemma.llm.load import edge_weights, load_edge

    if model == "edge":
        return load_edge(settings, adapter=adapter)
    return LlamaCppLLM(model, edge_weights(), profile="edge", threads=settings.threads)
