"""Evaluate the reader and the plan on hand-written requests: `python data/edge/kit/evaluate.py` (half a minute).

Reads `data/edge/heldout.jsonl`, which is never trained on (`train.py` leaves its texts out), and judges the kinds
`direct` (no tool), `tool` (one call) and `several` (calls in working order). No record store: a patient who is named is
taken for found. Saves every item to `data/edge/results/heldout.jsonl`, the figures to `heldout.json` beside it.

    id, kind, difficulty, question; before: the clinician's message before it; patient {"id", "name"}: who is open;
    found {"id", "name"}: whom a search returns; image: true; any_order: true; steps: [{"tool", "args"}]

An expected value is the exact text; a list gives several that are right, null among them an absent one; a plain null
means that any value is right. Case, blanks, quotes and marks at the ends do not count.
"""

import argparse
import hashlib
import json
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

KIT = Path(__file__).parent
sys.path.insert(0, str(KIT.parents[2]))

from docgemma.experiments.statistics import wilson  # noqa: E402
from docgemma.knowledge.drug_names import load_drug_names  # noqa: E402
from docgemma.reading.reader import load_reader  # noqa: E402
from docgemma.reading.request import read_request  # noqa: E402
from docgemma.rules.follow import carried  # noqa: E402
from docgemma.rules.known import NO_ENTITIES  # noqa: E402
from docgemma.rules.plan import NOT_SPECIFIED, Step, missing  # noqa: E402
from docgemma.state import AgentState, PatientRef, Request  # noqa: E402

FOLDER = KIT.parent
KINDS = ("direct", "tool", "several")
OPTIONAL = {"notes", "severity", "status"}  # an item need not name them
MOST_CALLS = 8
NOBODY_KNOWN = "found"  # id of a patient whom the item gives none
Item = dict[str, Any]


class Evaluation:
    def __init__(self, weights: Path):
        self.reader, self.drugs = load_reader(weights), load_drug_names()

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
        said = [{"tool": call.tool, "args": call.args} for call in calls]
        return {"id": item["id"], "difficulty": item["difficulty"], "calls": said, "marks": marks, "seconds": seconds}

    def state(self, item: Item) -> AgentState:
        """The state as the first node leaves it; the message before was read in its own turn."""
        last = self.request(item["before"], item, "") if "before" in item else None
        request = carried(self.request(item["question"], item, item.get("before", "")), last, "patient" in item)
        entities = {**NO_ENTITIES, "has_image": bool(item.get("image"))}
        patient = item.get("patient")
        return AgentState(
            user_query=item["question"], message=item["question"], request=request, extracted_entities=entities,
            active_patient=patient, turn_patient=patient, tool_results=[], step_count=0,
        )  # fmt: skip

    def request(self, message: str, item: Item, before: str) -> Request:
        """What the reader finds; every name and id is taken for a patient who exists."""
        active = item.get("patient")
        request = read_request(
            message, reader=self.reader, drugs=self.drugs, store=None, before=before, active=active
        )  # fmt: skip
        spans = self.reader.read(message, before=before, patient=active["name"] if active else "").spans
        ids = {span.text for span in spans.get("id", [])}
        people = [patient(text, text in ids, item) for text in request["unclear"]]
        return Request(**{**request, "patients": people, "unclear": []})


def patient(text: str, is_id: bool, item: Item) -> PatientRef:
    given = text if is_id else item.get("found", {}).get("id", NOBODY_KNOWN)
    search = "" if is_id else text
    return PatientRef(id=given, name=text, label=text, sex="", said=text, search=search, exact=True)


def follow(state: AgentState, item: Item) -> list[Step]:
    """Every call of the turn, each with an empty result: a chart without medicines, a search that finds its patient."""
    calls: list[Step] = []
    while (left := missing(state)) and len(calls) < MOST_CALLS:
        calls.append(left[0])
        found = {"id": item.get("found", {}).get("id", NOBODY_KNOWN), "name": "", "label": ""}
        result = {"patients": [found]} if left[0].tool == "search_patient" else {"medications": []}
        if left[0].tool == "search_patient" and (named := state["request"]["patients"]):
            result["patients"][0]["id"] = named[0]["id"]
        made = {"tool_name": left[0].tool, "args": left[0].args, "result": result, "error": None}
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
        rows.append({"capability": capability, "difficulty": difficulty, "n": len(marks), "right": sum(marks),
                     "share": round(sum(marks) / len(marks), 4), "low": round(low, 4), "high": round(high, 4)})  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", default="heldout", choices=["heldout", "dev"], help="dev: for choosing; not saved")
    parser.add_argument("--weights", type=Path, default=FOLDER / "reader.npz")
    args = parser.parse_args()
    lines = (FOLDER / f"{args.set}.jsonl").read_text(encoding="utf-8").splitlines()
    evaluation = Evaluation(args.weights)
    judged = [evaluation.judge(item) for item in map(json.loads, lines) if item["kind"] in KINDS]
    rows = table(judged)
    for row in sorted((row for row in rows if row["difficulty"] == "all"), key=lambda row: row["capability"]):
        print(f"{row['capability']:45} {row['right']:4}/{row['n']:<4} {row['share']:6.1%}  ({row['low']:.1%}-{row['high']:.1%})")
    if args.set == "heldout":
        out = FOLDER / "results"
        out.mkdir(exist_ok=True)
        (out / "heldout.jsonl").write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in judged))
        digest = hashlib.sha256(args.weights.read_bytes()).hexdigest()
        median = round(statistics.median(item["seconds"] for item in judged), 4)
        summary = {"items": len(judged), "reader_sha256": digest, "median_seconds": median, "rows": rows}
        (out / "heldout.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
