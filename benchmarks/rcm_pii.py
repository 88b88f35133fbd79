"""How much of what identifies a person the scrubber of the RCM agent hides, and what it hides wrongly.

    python benchmarks/rcm_pii.py [--split dev] [--errors]     # while working on it
    python benchmarks/rcm_pii.py --split test --keep          # writes data/results/rcm_pii.json

A value counts as hidden when every letter and digit of it is; a placeholder counts as right when it covers a value of
its own kind. Each line is a session of its own.
"""

import argparse
import json
from collections import Counter
from typing import Any

from docgemma.experiments.statistics import wilson
from docgemma.paths import data_file, data_root
from docgemma.rcm.pii import Scrubber


def rows(split: str) -> list[dict[str, Any]]:
    lines = data_file("rcm", "pii", "lines.jsonl").read_text("utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["split"] == split]


def measure(split: str) -> tuple[dict[str, Any], list[str]]:
    """Counts by label, and each error as a line."""
    counts: dict[str, Counter[str]] = {}
    errors, clean = [], Counter[str]()
    for row in rows(split):
        text, places = row["text"], Scrubber().findings(row["text"])
        for span in row["spans"]:
            own = {place for start, end, label in places if label == span["label"] for place in range(start, end)}
            any_ = {place for start, end, _ in places for place in range(start, end)}
            needed = {place for place in range(span["start"], span["end"]) if text[place].isalnum()}
            counted = counts.setdefault(span["label"], Counter())
            counted["n"] += 1
            counted["hidden"] += needed <= any_
            counted["labelled"] += needed <= own
            if not needed <= own:
                kind = "mislabelled" if needed <= any_ else "MISSED"
                errors.append(f"{row['id']} {kind} {span['label']} {text[span['start'] : span['end']]!r}: {text}")
        wrong = 0
        for start, end, label in places:
            right = any(s["start"] < end and start < s["end"] and s["label"] == label for s in row["spans"])
            counted = counts.setdefault(label, Counter())
            counted["found"] += 1
            counted["right"] += right
            if not right:
                wrong += 1
                errors.append(f"{row['id']} wrong {label} {text[start:end]!r}: {text}")
        clean["lines"] += not row["spans"]
        clean["untouched"] += not row["spans"] and not wrong
    table = {label: _shares(counted) for label, counted in sorted(counts.items())}
    total = sum(counts.values(), Counter[str]())
    return {"labels": table, "all": _shares(total), "lines without a value": dict(clean)}, errors


def _shares(counted: Counter[str]) -> dict[str, Any]:
    shares: dict[str, Any] = {"n": counted["n"], "found": counted["found"]}
    wanted = (("recall", "hidden", "n"), ("recall_label", "labelled", "n"), ("precision", "right", "found"))
    for name, right, total in wanted:
        low, high = wilson(counted[right], counted[total]) if counted[total] else (0.0, 1.0)
        value = round(counted[right] / counted[total], 4) if counted[total] else None
        shares[name] = {"value": value, "low": round(low, 4), "high": round(high, 4), "right": counted[right]}
    return shares


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--split", choices=["dev", "test"], default="dev")
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args(arguments)
    figures, errors = measure(options.split)
    for label, shares in {**figures["labels"], "all": figures["all"]}.items():
        said = [f"{name} {shares[name]['value']}" for name in ("recall", "recall_label", "precision")]
        print(f"{label:14} n {shares['n']:3}  " + "  ".join(said))
    print(figures["lines without a value"])
    if options.errors:
        print(*errors, sep="\n")
    if options.keep:
        path = data_root() / "results" / "rcm_pii.json"
        known = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        known[options.split] = figures | {"errors": errors}
        path.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
