"""Evaluate the reader and the plan on hand-written requests: `python data/edge/kit/evaluate.py` (half a minute).

Reads `data/edge/heldout.jsonl`, which is never trained on (`train.py` leaves its texts out), and judges the kinds
`direct` (no tool), `tool` (one call) and `several` (calls in working order). No record store: a patient who is named is
taken for found. Saves every item to `data/edge/results/heldout.jsonl`, the figures to `heldout.json` beside it.

    id, kind, difficulty, question; before: the clinician's message before it; patient {"id", "name"}: who is open;
    found {"id", "name"}: whom a search returns; image: true; any_order: true; steps: [{"tool", "args"}]

An expected value is the exact text; a list gives several that are right, null among them an absent one; a plain null
accepts any. Case, blanks, and quotes and marks at the ends do not count.
"""

import argparse
import hashlib
import json
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from docgemma.experiments.statistics import wilson
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.reading.reader import load_reader
from docgemma.reading.request import read_request
from docgemma.rules.follow import carried
from docgemma.rules.plan import NOT_SPECIFIED, Step, missing
from docgemma.state import AgentState, ImageRef, PatientRef, Request

FOLDER = Path(__file__).parents[1]
WEIGHTS = FOLDER / "reader.npz"
KINDS = ("direct", "tool", "several")
OPTIONAL = {"notes", "severity", "status"}  # an item need not name them
MOST_CALLS = 8
Item = dict[str, Any]


class Evaluation:
    def __init__(self) -> None:
        self.reader, self.drugs = load_reader(WEIGHTS), load_drug_names()

    def judge(self, item: Item) -> dict[str, Any]:
        """The calls planned for an item, and which of its decisions are right: [(capability, right)]."""
        start = time.perf_counter()
        state = self.state(item)
        calls = follow(state, item)
        seconds = time.perf_counter() - start
        tools, steps = [call.tool for call in calls], item.get("steps", [])
        marks = [("intent", bool(calls) == bool(steps))]
        if steps:
            firsts = {step["tool"] for step in (steps if item.get("any_order") else steps[:1])}
            marks.append(("first tool", tools[0] in firsts if tools else False))
            marks.append(("exact set of tools", set(tools) == {step["tool"] for step in steps}))
        for step in steps:
            right = any(call.tool == step["tool"] and same_args(step["args"], call.args) for call in calls)
            marks += [("arguments", right), (f"arguments {step['tool']}", right)]
        kept = {name: item.get(name) for name in ("id", "difficulty", "question", "steps")}
        return {**kept, "calls": [call._asdict() for call in calls], "marks": marks, "seconds": round(seconds, 4)}

    def state(self, item: Item) -> AgentState:
        """The state as the first node leaves it; the message before was read in its own turn."""
        last = self.request(item["before"], item, "") if "before" in item else None
        request = carried(self.request(item["question"], item, item.get("before", "")), last, "patient" in item)
        image = ImageRef(path="") if item.get("image") else None
        patient = item.get("patient")
        return AgentState(
            user_query=item["question"], message=item["question"], request=request, image=image,
            active_patient=patient, turn_patient=patient, tool_results=[], step_count=0,
        )  # fmt: skip

    def request(self, message: str, item: Item, before: str) -> Request:
        """What the reader finds. Whoever is named is taken for a patient who exists; a name beside an id is one."""
        active = item.get("patient")
        request = read_request(message, reader=self.reader, drugs=self.drugs, store=None, before=before, active=active)
        said = [text for text in request["unclear"] if text.upper() not in request["trials"]]
        ids = [text for text in said if any(char.isdigit() for char in text)]
        common = {"sex": "", "exact": True}
        people = [PatientRef(id=text, name=text, label=text, said=text, search="", **common) for text in ids]
        for text in [] if ids else said:
            people.append(PatientRef(id=person(item), name=text, label=text, said=text, search=text, **common))
        return Request(**{**request, "patients": people, "unclear": []})


def person(item: Item) -> str:  # whom a search returns
    return item.get("found", {}).get("id", "somebody")


def follow(state: AgentState, item: Item) -> list[Step]:
    """Every call of the turn, each with an empty result: a chart without medicines, a search that finds its patient."""
    calls: list[Step] = []
    while (left := missing(state)) and len(calls) < MOST_CALLS:
        calls.append(left[0])
        searched = left[0].tool == "search_patient"
        result = {"patients": [{"id": person(item)}]} if searched else {"medications": []}
        made = {
            "tool_name": left[0].tool,
            "args": left[0].args,
            "result": result,
            "error": None,
            "error_type": None,
            "empty": False,
            "writes": False,
        }
        state = AgentState(**{**state, "tool_results": [*state["tool_results"], made]})
    return calls


def same_args(expected: dict[str, Any], got: dict[str, Any]) -> bool:
    """Whether every argument is one of the accepted ones, and none is invented."""
    got = {name: value for name, value in got.items() if value not in (None, "", NOT_SPECIFIED)}
    extra = set(got) - set(expected) - OPTIONAL
    return not extra and all(accepted(name, value, got.get(name)) for name, value in expected.items())


def accepted(name: str, expected: Any, got: Any) -> bool:
    if expected is None:
        return True
    if name == "drug_names":
        return sorted(map(plain, expected)) == sorted(map(plain, got or []))
    return any(plain(value) == plain(got) for value in (expected if isinstance(expected, list) else [expected]))


def plain(value: Any) -> str:
    return "" if value is None else "".join(str(value).casefold().split()).strip("\"'“”.,;:")


def table(judged: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows by capability, and by difficulty in each: n, right, share, 95 % interval."""
    groups: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for item in judged:
        for capability, right in item["marks"]:
            groups[capability, "all"].append(right)
            groups[capability, item["difficulty"]].append(right)
    rows = []
    for (capability, difficulty), marks in groups.items():
        low, high = wilson(sum(marks), len(marks))
        counted = {"n": len(marks), "right": sum(marks), "low": round(low, 4), "high": round(high, 4)}
        rows.append({"capability": capability, "difficulty": difficulty, **counted})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", default="heldout", choices=["heldout", "dev"], help="dev: for choosing; not saved")
    args = parser.parse_args()
    lines = (FOLDER / f"{args.set}.jsonl").read_text(encoding="utf-8").splitlines()
    judge = Evaluation().judge
    judged = [judge(item) for item in map(json.loads, lines) if item["kind"] in KINDS]
    rows = table(judged)
    for row in (row for row in rows if row["difficulty"] == "all"):
        share = f"{row['right'] / row['n']:6.1%}  ({row['low']:.1%}-{row['high']:.1%})"
        print(f"{row['capability']:38} {row['right']:4}/{row['n']:<4} {share}")
    if args.set == "heldout":
        (FOLDER / "results").mkdir(exist_ok=True)
        saved = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in judged)
        (FOLDER / "results" / "heldout.jsonl").write_text(saved, encoding="utf-8")
        digest = hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()
        median = round(statistics.median(item["seconds"] for item in judged), 4)
        summary = {"items": len(judged), "reader_sha256": digest, "median_seconds": median, "rows": rows}
        (FOLDER / "results" / "heldout.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
