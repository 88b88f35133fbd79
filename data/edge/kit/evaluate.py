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
from types import SimpleNamespace
from typing import Any

from docgemma.experiments.statistics import wilson
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.llm.base import LLM
from docgemma.nodes.context import Context, decided
from docgemma.nodes.intent_classify import classify_intent
from docgemma.nodes.tool_select import select_tool
from docgemma.paths import kit
from docgemma.reading.reader import load_reader
from docgemma.rules.follow import carried
from docgemma.rules.plan import NOT_SPECIFIED, Step, complete
from docgemma.settings import Settings
from docgemma.state import AgentState
from docgemma.tools import toolbox

unlinked = kit("experiments", "unlinked")
FOLDER = Path(__file__).parents[1]
WEIGHTS = FOLDER / "reader.npz"
KINDS = ("direct", "tool", "several")
OPTIONAL = {"notes", "severity", "status"}  # an item need not name them
Item = dict[str, Any]


def judge_all(name: str = "heldout", llm: LLM | None = None, sample: int | None = None) -> list[dict[str, Any]]:
    """Every item of a set that has an answer, or the first `sample` of them; `llm`: a language model that decides."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    items = [item for item in map(json.loads, lines) if item["kind"] in KINDS][:sample]
    context = asking(llm) if llm and llm.profile == "full" else None
    return [judge(item, context) for item in items]


def asking(llm: LLM) -> Context:
    """What the graph's nodes need to ask this model; there is no store."""
    given = {"llm": llm, "toolbox": toolbox(), "drugs": load_drug_names(), "reader": load_reader(WEIGHTS)}
    return Context(**given, store=None, knowledge=None, settings=Settings(), thread="heldout")


def judge(item: Item, context: Context | None = None) -> dict[str, Any]:
    """The calls planned for an item, and which of its decisions are right: [(capability, right)].

    With a `context` its model decides, at the nodes of the graph, in place of the plan alone.
    """
    start = time.perf_counter()
    calls = asked(state_of(item), item, context) if context else unlinked.follow(state_of(item), person(item))
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


def state_of(item: Item) -> AgentState:
    """The state as the first node leaves it; the message before was read in its own turn."""
    about = {"active": item.get("patient"), "person": person(item)}
    before = item.get("before", "")
    last = unlinked.understood(before, **about) if before else None
    request = carried(unlinked.understood(item["question"], before=before, **about), last, "patient" in item)
    return unlinked.situation(item["question"], request, item.get("patient"), bool(item.get("image")))


def asked(state: AgentState, item: Item, context: Context) -> list[Step]:
    """As `follow`, with a model that is asked what the graph asks it: a look-up or not, which tool, which arguments."""
    runtime = SimpleNamespace(context=context)
    calls: list[Step] = []
    state |= {"history": [], **classify_intent(state, runtime)}
    while state["intent"] == "TOOL_NEEDED" and len(calls) < unlinked.MOST_CALLS and not (calls and complete(state)):
        state |= select_tool(state, runtime)
        if not state["current_tool"]:
            break
        tool, args = context.toolbox[state["current_tool"]], state["current_args"]
        calls.append(Step(tool.name, args, ""))
        data, text = {"medications": []}, "Done."
        if tool.name == "search_patient":
            data, text = {"patients": [{"id": person(item)}]}, f"Found one patient, id {person(item)}."
        results = [*state["tool_results"], decided(tool, args, data, text)]
        state |= {"tool_results": results, "step_count": len(results), "proposed_none": False}
    return calls


def person(item: Item) -> str:  # whom a search returns
    return item.get("found", {}).get("id", "somebody")


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
    judged = judge_all(args.set)
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
        before = json.loads((FOLDER / "results" / "heldout.json").read_text(encoding="utf-8"))
        summary = {
            "items": len(judged), "scored": before["scored"] + 1, "reader_sha256": digest, "median_seconds": median,
            "rows": rows,
        }  # fmt: skip
        (FOLDER / "results" / "heldout.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
