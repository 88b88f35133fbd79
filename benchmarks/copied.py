"""Arguments copied from what was said, against arguments written freely: the edge model on llama.cpp.

    python benchmarks/copied.py [--calls N] [--threads N]

Every call of the held-out set, through the graph's own node with DOCGEMMA_COPY_ARGS on and off. Off, the same adapter
writes every value itself, in the same lines, and code settles nothing. `decoding.py --part copied` does the same on
transformers, with a model that was not trained for it.
"""

import argparse
from typing import Any

from common import Report, middle, prepared, share

from docgemma.edge.copying import Made, compare
from docgemma.llm.load import load_edge

HEAD = ["arguments", "all exact (95 %)", "invented identifying values (95 %)", "unparsed", "settled by code",
        "tokens a call", "s a call (mean)", "s where the model is asked (median)"]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, help="evenly spread over the set; all by default")
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    about = " ".join(__doc__.partition("]\n\n")[2].split())
    with prepared(threads=chosen.threads) as settings:
        llm = load_edge(settings)
        made = dict(zip(("copied", "written freely"), compare(llm, settings, calls=chosen.calls), strict=True))
        llm.close()
    report = Report("copied", about, threads=chosen.threads, calls=len(made["copied"]))
    report.table("arguments", HEAD, [row(name, found) for name, found in made.items()])
    report.keep("invented", {name: [vars(one) for one in found if one.invented] for name, found in made.items()})


def row(name: str, found: list[Made]) -> list[Any]:
    total = len(found)
    return [
        name, share(sum(one.exact for one in found), total),
        share(sum(len(one.invented) for one in found), sum(one.values for one in found)),
        sum(one.unparsed for one in found), sum(not one.calls for one in found),
        sum(one.tokens for one in found) / total, sum(one.seconds for one in found) / total,
        middle([one.seconds for one in found if one.calls]),
    ]  # fmt: skip


if __name__ == "__main__":
    main()
