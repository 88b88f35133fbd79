"""`python -m docgemma.edge`: make training text, train the adapter, evaluate it."""

import argparse
import json
import sys
from pathlib import Path

from docgemma.edge.command import evaluate, preview, train
from docgemma.errors import DocGemmaError


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="docgemma edge", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("train", help="train the adapter on this machine's CPU and write data/edge/adapter.gguf")
    one.add_argument("--out", type=Path, help="where to write; the card goes beside it")
    one.add_argument("--recipe", type=json.loads, default={}, help='changes to the recipe, as JSON: {"passes": 1}')
    two = commands.add_parser("eval", help="run the hand-written sets through the graph's nodes")
    two.add_argument("--set", choices=["heldout", "dev"], default="heldout")
    two.add_argument("--model", choices=["edge", "base", "rules"], default="edge")
    two.add_argument("--adapter", type=Path, help="another adapter file than the stored one")
    two.add_argument("--no-narrowing", action="store_true", help="the model chooses among all ten tools")
    two.add_argument(
        "--save", type=Path, help="folder for every decision and the summary; data/edge/results by default"
    )
    two.add_argument("--json", action="store_true")
    three = commands.add_parser("show", help="print some training turns")
    three.add_argument("--count", type=int, default=10)
    three.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    try:
        {"train": train, "eval": evaluate, "show": preview}[args.command](args)
    except DocGemmaError as error:
        print(error.line(), file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
