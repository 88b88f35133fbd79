"""A saved run as text for a grader: what was asked, what was expected, what came. Judges nothing itself.

    docgemma eval data/natural/SET.yaml --save run.jsonl
    python data/natural/kit/show.py data/natural/SET.yaml run.jsonl --out graded --size 20

Without --out everything is printed. A case of the set that the run does not hold is shown as not run.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docgemma.errors import DocGemmaError
from docgemma.paths import kit

load_cases = kit("golden", "cases").load_cases


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path, help="the YAML file of the cases")
    parser.add_argument("run", type=Path, help="what `docgemma eval --save` wrote")
    parser.add_argument("--out", type=Path, help="folder for files of --size cases each")
    parser.add_argument("--size", type=int, default=20, help="cases a file")
    parser.add_argument("--failed", action="store_true", help="only cases with a failed check")
    args = parser.parse_args(argv)
    if args.size < 1:
        parser.error("--size is at least 1")
    try:
        cases, results = load_cases(args.set), saved(args.run)
    except (DocGemmaError, OSError, ValueError, KeyError, TypeError) as error:
        print(error.line() if isinstance(error, DocGemmaError) else f"{args.run}: {error!r}", file=sys.stderr)
        return 1
    if args.failed:
        cases = [case for case in cases if any(turn["failed"] for turn in results.get(case.id, []))]
    pages = ["\n".join(block(case, results.get(case.id, [])) for case in group) for group in cut(cases, args.size)]
    if args.out is None:
        print("\n".join(pages))
        return 0
    args.out.mkdir(parents=True, exist_ok=True)
    for number, page in enumerate(pages, 1):
        path = args.out / f"{args.set.stem}-{number:02}.txt"
        path.write_text(page, encoding="utf-8")
        print(path)
    return 0


def saved(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The turns of a run by case, in order."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        turn = json.loads(line)
        found[turn["case"]].append(turn)
    return dict(found)


def cut(cases: list[Any], size: int) -> list[list[Any]]:
    return [cases[start : start + size] for start in range(0, len(cases), size)]


def block(case: Any, results: list[dict[str, Any]]) -> str:
    """One case, turn after turn."""
    lines = [f"=== {case.id}" + (f"  (open patient: {case.patient})" if case.patient else "")]
    for number, turn in enumerate(case.turns):
        if len(case.turns) > 1:
            lines.append(f"--- turn {number + 1}")
        lines += [*wanted(turn), *(came(results[number]) if number < len(results) else ["NOT RUN"])]
    return "\n".join([*lines, ""])


def wanted(turn: Any) -> Iterator[str]:
    yield f"ASKED     {folded(turn.ask)}"
    yield f"EXPECTED  {folded(turn.expected)}"
    for label, items in (("MUST", turn.must), ("MUST NOT", turn.must_not), ("TOOLS", turn.tools)):
        if items:
            yield f"{label:<10}{' ; '.join(items)}"
    if turn.card:
        yield f"CARD      {fields(turn.card) if isinstance(turn.card, dict) else turn.card}"
    if turn.status:
        yield f"STATUS    {turn.status}"


def came(result: dict[str, Any]) -> Iterator[str]:
    indent = "\n          "
    yield f"ANSWER    [{result['status']}] {result['answer'].strip().replace(chr(10), indent)}"
    if card := result["card"]:
        person = card.get("patient") or {}
        yield f"WAITING   {card['name']}: {fields(card['args'])}" + (f"; for {fields(person)}" if person else "")
        yield from (f"  finding {finding}" for finding in card.get("findings", []))
    if result["decided"]:
        yield f"DECIDED   {result['decided'].strip().replace(chr(10), indent)}"
    ran = [f"{tool['name']}({fields(tool['args'])}){'' if tool['ok'] else ' failed'}" for tool in result["tools"]]
    yield f"RAN       {'; '.join(ran) or 'nothing'}"
    yield f"CHECKS    {'; '.join(result['failed']) or 'passed'}"


def fields(values: dict[str, Any]) -> str:
    return ", ".join(f"{key}: {folded(str(value))}" for key, value in values.items())


def folded(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    sys.exit(main())
