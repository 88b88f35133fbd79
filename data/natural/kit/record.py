"""Keep the first result of a sealed round: its sets, every grade with its reason, every failing answer, the figures.

    python data/natural/kit/record.py ROUND COMMIT FOLDER

FOLDER holds, of each set: SET.yaml, SET.run.jsonl (`docgemma eval --save`) and SET.grades.jsonl (of the grader).
Prints the row for the README. Each case has to be graded once; a round that is kept already is not replaced.
"""

import argparse
import json
import shutil
import sys
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

from docgemma.errors import DocGemmaError
from docgemma.experiments.statistics import wilson
from docgemma.paths import data_file, kit

saved = kit("natural", "show").saved

GRADES = "ABCDE"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("round", type=int)
    parser.add_argument("commit")
    parser.add_argument("folder", type=Path)
    args = parser.parse_args(argv)
    try:
        print(record(args.round, args.commit, args.folder))
    except (DocGemmaError, OSError, ValueError, KeyError) as error:
        print(error.line() if isinstance(error, DocGemmaError) else f"{args.folder}: {error!r}", file=sys.stderr)
        return 1
    return 0


def record(number: int, commit: str, folder: Path) -> str:
    """The row of the README, once everything is written."""
    results = data_file("results")
    rounds = json.loads((results / "natural.json").read_text(encoding="utf-8"))
    if any(item["round"] == number for item in rounds["rounds"]):
        raise ValueError(f"round {number} is kept already")
    kept: list[dict[str, str]] = []
    failing: list[str] = []
    counts = {"requests": Counter[str](), "conversations": Counter[str]()}
    passed, sets = 0, sorted(folder.glob("*.yaml"))
    for path in sets:
        cases, run = kit("golden", "cases").load_cases(path), saved(path.with_suffix(".run.jsonl"))
        grades = graded(path.with_suffix(".grades.jsonl"), cases)
        for case in cases:
            grade = grades[case.id]
            kept.append(grade)
            counts["conversations" if len(case.turns) > 1 else "requests"][grade["grade"]] += 1
            passed += not any(turn["failed"] for turn in run[case.id])
            if grade["grade"] != "A":
                failing.append(answers(case, grade, run[case.id]))
    entry: dict[str, Any] = {"round": number, "date": date.today().isoformat(), "commit": commit}
    entry["sets"] = [path.stem for path in sets]
    for kind, found in counts.items():
        entry[kind] = {"n": found.total(), **{grade: found[grade] for grade in GRADES}}
    entry["checks"] = {"passed": passed, "n": len(kept)}
    rounds["rounds"].append(entry)
    (results / "natural.json").write_text(json.dumps(rounds, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = "".join(json.dumps(grade, ensure_ascii=False) + "\n" for grade in kept)
    (results / "natural" / f"round{number}.jsonl").write_text(lines, encoding="utf-8")
    (results / "natural" / f"round{number}_failing.txt").write_text("\n".join(failing), encoding="utf-8")
    for path in sets:
        shutil.copy(path, data_file("natural") / path.name)
    return row(entry)


def graded(path: Path, cases: list[Any]) -> dict[str, dict[str, str]]:
    """The grades by case; every case once."""
    grades = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    by_id = {grade["id"]: grade for grade in grades}
    if sorted(by_id) != sorted(case.id for case in cases) or len(by_id) != len(grades):
        wrong = {case.id for case in cases} ^ set(by_id)
        raise ValueError(f"{path.name}: not graded once: {', '.join(sorted(wrong)) or 'a case is graded twice'}")
    if wrong_grades := [grade["id"] for grade in grades if grade["grade"] not in GRADES]:
        raise ValueError(f"{path.name}: no grade of {GRADES}: {', '.join(wrong_grades)}")
    return by_id


def answers(case: Any, grade: dict[str, str], run: list[dict[str, Any]]) -> str:
    """A failing case, verbatim."""
    lines = [f"== {case.id} {grade['grade']}: {grade['why']}"]
    for turn, result in zip(case.turns, run, strict=True):
        lines += [f"ASKED {' '.join(turn.ask.split())}", result["answer"].strip(), ""]
    return "\n".join([*lines, ""])


def row(entry: dict[str, Any]) -> str:
    asked, talks = entry["requests"], entry["conversations"]
    n = asked["n"]
    low, high = wilson(asked["A"], n)
    voices = ", ".join(name.replace("_", " ") for name in entry["sets"])
    shares = [f"{(asked['A'] + asked['B']) / n:.0%}", *(f"{asked[grade] / n:.0%}" for grade in "CD")]
    right = f"{asked['A']} = {asked['A'] / n:.0%} ({low:.0%}–{high:.0%})"
    cells = [voices, str(n), right, *shares, f"{asked['E'] / n:.1%}", f"{talks['A']} / {talks['n']}, {talks['E']}"]
    return " | ".join([f"| {entry['round']}", *cells]) + " |"


if __name__ == "__main__":
    sys.exit(main())
