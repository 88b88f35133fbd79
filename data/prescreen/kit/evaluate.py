"""Measure a prescreen: recall of the eligible trials, ranking and cost, from TREC files; and the judging of criteria.

Source of the files' format: TREC Clinical Trials, trec-cds.org. 2 eligible, 1 on the topic but excluded, 0 neither.
Intervals are Wilson's over trials: trials of one patient are found together, so that they are narrower than the truth.
"""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from docgemma.errors import UsageError
from docgemma.experiments.statistics import wilson
from docgemma.paths import kit
from docgemma.prescreen.records import TOOLS, Criterion, Study

ELIGIBLE = 2


def read_queries(file: Path) -> dict[str, str]:
    """The note of each patient.

    Raises:
        UsageError: the file cannot be read, or a line is none of its format.
    """
    with _reading(file, "queries", 'A line is {"_id": ..., "text": ...}.') as lines:
        return {str(line["_id"]): str(line["text"]) for line in map(json.loads, lines)}


def read_qrels(file: Path) -> dict[str, dict[str, int]]:
    """The grades of the judged trials, by patient.

    Raises:
        UsageError: the file cannot be read, or a line is none of its format.
    """
    grades: dict[str, dict[str, int]] = {}
    with _reading(file, "relevance", "A line is query, trial, grade, with tabs.") as lines:
        for line in lines[1:]:
            query, trial, grade = line.split("\t")
            grades.setdefault(query, {})[trial] = int(grade)
    return grades


def read_criteria(file: Path) -> list[dict[str, Any]]:
    """Labelled criteria: a note and its criteria with kind, text and verdict on each line.

    Raises:
        UsageError: the file cannot be read, or a line is none of its format.
    """
    with _reading(file, "labelled criteria", "data/prescreen/README.md says how.") as lines:
        cases = [json.loads(line) for line in lines]
        for case in cases:
            _ = case["id"], case["note"], [(item["kind"], item["text"], item["verdict"]) for item in case["criteria"]]
        return cases


@contextmanager
def _reading(file: Path, what: str, hint: str) -> Iterator[list[str]]:
    """The lines of a file that are not blank; what fails while they are read is one clear line."""
    try:
        yield [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file} is no file of {what}.", hint=hint) from error


def measured(query: str, ablation: str, told: dict[str, Any], grades: dict[str, int], seconds: float) -> dict[str, Any]:
    """One run as a row.

    Args:
        told: the run as `docgemma trials search --json` prints it.
        grades: of the judged trials of this patient.
    """
    eligible = {trial for trial, grade in grades.items() if grade >= ELIGIBLE}
    found: set[str] = set()
    searches = []
    for search in told["searches"]:
        brought = eligible & set(search["returned"]) - found
        found |= brought
        alone = len(eligible & set(search["returned"]))
        searches.append({
            "tool": search["tool"], "args": search["args"], "returned": len(search["returned"]),
            "new": len(search["new"]), "eligible": alone, "new_eligible": len(brought),
            "recall": _share(len(found), len(eligible)),
        })  # fmt: skip
    ranked = [item["nct_id"] for item in told["candidates"]]
    low, high = wilson(len(found), len(eligible))
    return {
        "query": query, "ablation": ablation, "eligible": len(eligible), "found": len(found),
        "recall": _share(len(found), len(eligible)), "low": round(low, 4), "high": round(high, 4),
        "trials": told["found"],
        "terms": len({_term(search["args"]) for search in searches if search["tool"] == TOOLS[0]}),
        "calls": told["calls"], "budget": told["budget"], "tokens": told["tokens"], "seconds": round(seconds, 2),
        "cost": told["cost"], "ndcg_judged": round(ndcg(ranked, grades, judged_only=True), 4),
        "ndcg_all": round(ndcg(ranked, grades), 4), "partial": told["why_partial"], "searches": searches,
    }  # fmt: skip


def summarized(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each ablation: means over patients, and the recall of all trials together with its interval."""
    out = []
    for ablation in dict.fromkeys(row["ablation"] for row in rows):
        own = [row for row in rows if row["ablation"] == ablation]
        found, eligible = (sum(row[name] for row in own) for name in ("found", "eligible"))
        low, high = wilson(found, eligible)
        means = {name: round(sum(row[name] for row in own) / len(own), 4)
                 for name in ("recall", "terms", "seconds", "cost", "ndcg_judged", "ndcg_all")}  # fmt: skip
        out.append({
            "ablation": ablation, "queries": len(own), "n": eligible, "found": found, "pooled": _share(found, eligible),
            "low": round(low, 4), "high": round(high, 4), "mean": means,
            "partial": sum(bool(row["partial"]) for row in own),
            "calls": {tool: sum(row["calls"][tool] for row in own) for tool in TOOLS},
            "tokens": {kind: sum(row["tokens"][kind] for row in own) for kind in ("prompt", "completion")},
        })  # fmt: skip
    return out


def curves(rows: Sequence[dict[str, Any]], budget: int) -> dict[str, list[float]]:
    """Mean recall after 0, 1, ... calls; a run that stopped early stays where it was."""
    found: dict[str, list[float]] = {}
    for ablation in dict.fromkeys(row["ablation"] for row in rows):
        own = [[0.0, *(search["recall"] for search in row["searches"])] for row in rows if row["ablation"] == ablation]
        found[ablation] = [
            round(sum(line[min(calls, len(line) - 1)] for line in own) / len(own), 4) for calls in range(budget + 1)
        ]
    return found


def draw(rows: Sequence[dict[str, Any]], budget: int, file: Path) -> None:
    """Recall against calls, a line for each ablation.

    Raises:
        ConfigError: matplotlib is not installed, or the file cannot be written.
    """
    plots = kit("experiments", "plots")
    figure, axes = plots.empty_figure(7, 4.2)
    for (ablation, line), style in zip(curves(rows, budget).items(), ("-", "--", "-.", ":", (0, (5, 1))), strict=False):
        axes.plot(range(len(line)), line, linestyle=style, label=f"{ablation} ({line[-1]:.0%})")
    axes.set(xlabel="calls", ylabel="recall of eligible trials, mean over patients", ylim=(0, 1), xlim=(0, budget))
    axes.legend(loc="lower right")
    axes.grid(alpha=0.3)
    plots.save(figure, file)


def ndcg(ranked: Sequence[str], grades: dict[str, int], *, judged_only: bool = False) -> float:
    """nDCG of a ranking. The ideal holds every relevant trial, also one that was not found.

    Args:
        grades: of the judged trials; 0 is not relevant.
        judged_only: leave out trials without a grade, and judge only those that were ranked.
    """
    order = [trial for trial in ranked if trial in grades] if judged_only else list(ranked)
    best = sorted((grades[trial] for trial in (order if judged_only else grades)), reverse=True)
    ideal = _gain(best)
    return _gain([grades.get(trial, 0) for trial in order]) / ideal if ideal else 0.0


def _gain(grades: Sequence[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(place + 1) for place, grade in enumerate(grades, 1))


def as_study(case: dict[str, Any]) -> Study:
    """A labelled note's criteria as a trial, so that they go the way of every trial."""
    text = "".join(
        f"{kind.capitalize()} Criteria:\n\n"
        + "".join(f"* {c['text']}\n" for c in case["criteria"] if c["kind"] == kind)
        for kind in ("inclusion", "exclusion")
    )
    return Study(id=case["id"], title=case["id"], status="", phases=[], study_type="", conditions=[], keywords=[],
                 interventions=[], min_age=None, max_age=None, sex="", criteria=text, url="")  # fmt: skip


def judged(cases: Sequence[dict[str, Any]], verdicts: dict[str, list[Criterion]]) -> dict[str, Any]:
    """Accuracy, each class, and macro-F1 beside that of the best answer that is always the same."""
    truth = {(case["id"], item["text"]): item["verdict"] for case in cases for item in case["criteria"]}
    both = [
        (truth[trial, item["text"]], item["verdict"])
        for trial, items in verdicts.items() for item in items if (trial, item["text"]) in truth
    ]  # fmt: skip
    right = sum(true == told for true, told in both)
    low, high = wilson(right, len(both))
    classes = {}
    for name in sorted({true for true, _ in both}):
        hit = sum(true == told == name for true, told in both)
        n, called = sum(true == name for true, _ in both), sum(told == name for _, told in both)
        classes[name] = {"n": n, "precision": _share(hit, called), "recall": _share(hit, n),
                         "f1": round(_f1(both, name), 4)}  # fmt: skip
    always = [_macro_f1([(true, name) for true, _ in both]) for name in classes]
    return {
        "n": len(both), "not_judged": len(truth) - len(both), "accuracy": _share(right, len(both)),
        "low": round(low, 4), "high": round(high, 4), "macro_f1": _macro_f1(both),
        "always_one_class": max(always, default=0.0),
        "classes": classes,
    }  # fmt: skip


def _f1(both: Sequence[tuple[str, str]], name: str) -> float:
    hit = sum(true == told == name for true, told in both)
    return 2 * hit / sum((true == name) + (told == name) for true, told in both)


def _macro_f1(both: Sequence[tuple[str, str]]) -> float:
    """Mean F1 of the classes that occur among the true verdicts."""
    scores = [_f1(both, name) for name in sorted({true for true, _ in both})]
    return round(sum(scores) / len(scores), 4) if scores else 0.0


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _term(args: dict[str, Any]) -> str:
    said = (str(args.get(name, "")) for name in ("condition", "intervention", "eligibility_keywords"))
    return " | ".join(said).casefold()
