"""Sealed rounds of the revenue-cycle agent: cases written by helpers who had seen neither code nor data.

python benchmarks/rcm_fresh.py data/rcm/fresh/round_1.yaml [--keep]

Each case's document is rendered to a PDF, its question asked once of the edge model, and what was expected compared.
`--keep` appends the round to data/results/rcm_fresh.json; a round counts only at its first run.
"""

import argparse
import json
import subprocess
import tempfile
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from reportlab.lib import colors
from reportlab.lib.pagesizes import LETTER
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import Flowable, PageBreak, Paragraph, SimpleDocTemplate, Table, TableStyle

from docgemma.agent import Agent
from docgemma.experiments.statistics import wilson
from docgemma.graphs.rcm import parts_of, run
from docgemma.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "data" / "results" / "rcm_fresh.json"
STATUS = {"answered": "answered", "asked back": "needs_clarification", "refused": "refused"}
BODY = ParagraphStyle("body", fontName="Helvetica", fontSize=10, leading=13, spaceAfter=3)
HEAD = ParagraphStyle("head", parent=BODY, fontName="Helvetica-Bold", spaceBefore=5)


def render(pages: list[str], path: Path) -> None:
    """A page of text as a page of PDF: headings in capitals bold, rows that begin with | as a table."""
    flow: list[Flowable] = []
    for page in pages:
        rows: list[list[str]] = []
        for line in [*page.splitlines(), ""]:
            if line.strip().startswith("|"):
                rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
                continue
            if rows:
                flow.append(Table(rows, style=TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.grey)])))
                rows = []
            if text := line.strip():
                escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("  ", "&nbsp; ")
                flow.append(Paragraph(escaped, HEAD if text.isupper() and len(text) < 70 else BODY))
        flow.append(PageBreak())
    SimpleDocTemplate(str(path), pagesize=LETTER, invariant=1).build(flow[:-1])


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def scored(case: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """What of the expectations is wrong. `met_wrongly`: criteria that were said to be met and are not."""
    wants, said = case["expect"], {item["id"].rpartition(".")[2]: item["verdict"] for item in told["criteria"]}
    allowed = [STATUS.get(name, name) for name in [wants["status"], *listed(wants.get("status_also_ok"))]]
    answered, policy = told["status"] == "answered", (told["policy"] or {}).get("id", "none")
    verdicts = {str(name): verdict for name, verdict in (wants.get("verdicts") or {}).items()}
    wrong = {name: said.get(name, "") for name, verdict in verdicts.items() if said.get(name) != verdict}
    banned = {str(name): listed(never) for name, never in (wants.get("verdict_must_not_be") or {}).items()}
    bad = {name: said[name] for name, never in banned.items() if said.get(name) in never}
    escalates = str(wants.get("escalate")).lower() in ("yes", "true")
    return {
        "id": case["id"],
        "status": told["status"] in allowed,
        "policy": not answered or policy in [str(wants.get("policy") or "none"), *listed(wants.get("policy_also_ok"))],
        "escalation": not answered or bool(wants.get("escalate_debatable")) or told["escalate"] == escalates,
        "verdicts": len(verdicts), "wrong": wrong | bad,
        "met_wrongly": [name for name, verdict in (wrong | bad).items() if verdict == "MET"],
        "unquoted": sum(not (claim["verified"] and claim["quote"]) for claim in told["claims"]),
    }  # fmt: skip


def ask(case: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        home, pdf = Path(folder, "home"), Path(folder, f"{case['id']}.pdf")
        if pages := (case.get("document") or {}).get("pages"):
            render(pages, pdf)
        with Agent(Settings(home=home, sources="offline"), model="edge") as agent:
            return run(case["question"], pdf=[pdf] if pdf.exists() else [], **parts_of(agent))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--keep", action="store_true", help="append the round to the stored ones")
    chosen = parser.parse_args()
    cases = [scored(case, ask(case)) for case in yaml.safe_load(chosen.file.read_text(encoding="utf-8"))]
    right = sum(item["status"] and item["policy"] and item["escalation"] and not item["wrong"] for item in cases)
    counts = Counter({key: sum(item[key] for item in cases) for key in ("status", "policy", "escalation", "unquoted")})
    verdicts = sum(item["verdicts"] for item in cases)
    wrong = sum(len(item["wrong"]) for item in cases)
    low, high = wilson(right, len(cases))
    told = {
        "file": chosen.file.name, "date": date.today().isoformat(), "n": len(cases), "all_right": right,
        "low": round(low, 4), "high": round(high, 4), **counts, "verdicts": verdicts, "verdicts_wrong": wrong,
        "met_wrongly": sum(len(item["met_wrongly"]) for item in cases), "cases": cases,
        "commit": subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True,
                                 check=True).stdout.strip(),
    }  # fmt: skip
    print(json.dumps(told, indent=1))
    if chosen.keep:
        rounds = json.loads(STORED.read_text(encoding="utf-8"))["rounds"] if STORED.exists() else []
        STORED.write_text(json.dumps({"rounds": [*rounds, told]}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
