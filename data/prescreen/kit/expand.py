"""Expand hand-written families of trials into records as ClinicalTrials.gov gives them, with queries and relevance.

    python data/prescreen/kit/expand.py data/prescreen/benchmark/dev

reads FOLDER/families.yaml and writes records.jsonl.gz, queries.jsonl and qrels.tsv beside it. ../README.md says what a
family holds. The same file and seed give the same bytes.
"""

import argparse
import gzip
import json
import random
from pathlib import Path
from typing import Any

import yaml

STATUSES = ["RECRUITING"] * 9 + ["NOT_YET_RECRUITING"] * 2 + ["ACTIVE_NOT_RECRUITING"] * 3 + ["COMPLETED"] * 6
PHASES = [
    ["PHASE1"],
    ["PHASE1", "PHASE2"],
    ["PHASE2"],
    ["PHASE2"],
    ["PHASE2", "PHASE3"],
    ["PHASE3"],
    ["PHASE4"],
    ["NA"],
]
DESIGNS = [
    "randomised, double-blind",
    "open-label",
    "randomised, open-label",
    "single-arm",
    "placebo-controlled",
    "pragmatic",
    "dose-finding",
    "crossover",
]
TITLES = [
    "{drug} for {condition}",
    "{drug} in adults with {condition}: a {design} study",
    "A {design} trial of {drug}",
    "{condition}: effect of {drug}",
    "Efficacy and safety of {drug} in {condition}",
    "The {word} study of {drug}",
    "{drug} compared with usual care in {condition}",
    "Evaluation of {drug} ({word})",
]
WORDS = "ALBION CEDAR CORAL DELTA EMBER FJORD GARNET HARBOR INDIGO JUNIPER KESTREL LANTERN MERIDIAN NIMBUS ONYX".split()
PLACES = [
    ("Ghent", "Belgium"),
    ("Lyon", "France"),
    ("Leipzig", "Germany"),
    ("Leeds", "United Kingdom"),
    ("Toronto", "Canada"),
    ("Houston", "United States"),
    ("Denver", "United States"),
    ("Osaka", "Japan"),
]
COMMON_IN = ["Written informed consent", "Able to attend study visits", "Willing to use adequate contraception"]
COMMON_OUT = [
    "Pregnant or breast-feeding",
    "Participation in another drug trial within 30 days",
    "Any condition that makes participation unsafe in the investigator's opinion",
    "Known hypersensitivity to the study drug",
]
AGES = [("18 Years", ""), ("18 Years", "80 Years"), ("18 Years", "85 Years"), ("", ""), ("", ""), ("18 Years", "")]


def record(number: int, family: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """One study of a family. A part that the family leaves out is drawn from what all trials share, or is absent."""
    conditions = dice.choice(family["conditions"]).split(" + ")
    drug = dice.choice(family.get("drugs") or ["Structured follow-up"])
    observational = family.get("kind") == "OBSERVATIONAL"
    words = {
        "drug": drug,
        "condition": conditions[0].lower(),
        "design": dice.choice(DESIGNS),
        "word": dice.choice(WORDS),
    }
    title = dice.choice(family.get("titles") or TITLES).format(**words)
    ages = [part.strip() for part in family["ages"].split("-")] if "ages" in family else list(dice.choice(AGES))
    inclusion = [*family.get("inclusion", []), *dice.sample(COMMON_IN, 2)]
    exclusion = [*family.get("exclusion", []), *dice.sample(COMMON_OUT, 2)]
    bullets = ["Inclusion Criteria:", "", *(f"* {line}" for line in inclusion), "",
               "Exclusion Criteria:", "", *(f"* {line}" for line in exclusion)]  # fmt: skip
    eligibility = {
        "eligibilityCriteria": "\n".join(bullets),
        "healthyVolunteers": False,
        "sex": family.get("sex", "ALL"),
    }
    eligibility |= {key: age for key, age in zip(("minimumAge", "maximumAge"), ages, strict=True) if age}
    known = family.get("keywords", [])
    keywords = dice.sample(known, min(len(known), dice.randint(0, 3)))
    city, country = dice.choice(PLACES)
    synonyms = family.get("synonyms", [])
    section: dict[str, Any] = {
        "identificationModule": {"nctId": f"SYN-TRIAL-{number:05}", "briefTitle": title[0].upper() + title[1:]},
        "statusModule": {"overallStatus": dice.choice(STATUSES)},
        "descriptionModule": {"briefSummary": f"Invented for a benchmark. Design: {words['design']}."},
        "conditionsModule": {"conditions": conditions} | ({"keywords": keywords} if keywords else {}),
        "designModule": {"studyType": "OBSERVATIONAL"} if observational
        else {"studyType": "INTERVENTIONAL", "phases": dice.choice(PHASES)},
        "armsInterventionsModule": {"interventions": [{"type": "OTHER" if observational else "DRUG", "name": drug}]},
        "eligibilityModule": eligibility,
        "contactsLocationsModule": {"locations": [{"city": city, "country": country}]},
    }  # fmt: skip
    meshes = [{"term": term} for term in dice.sample(synonyms, min(len(synonyms), 2))]
    return {"protocolSection": section} | (
        {"derivedSection": {"conditionBrowseModule": {"meshes": meshes}}} if meshes else {}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first", type=int, default=1, help="number of the first trial")
    options = parser.parse_args()
    written = yaml.safe_load((options.folder / "families.yaml").read_text(encoding="utf-8"))
    families = [family for family in written["families"] for _ in range(family["n"])]
    dice = random.Random(written.get("seed", 16))
    dice.shuffle(families)  # so that an id tells nothing of its family
    lines, judged = [], []
    for number, family in enumerate(families, options.first):
        lines.append(json.dumps(record(number, family, dice), ensure_ascii=False))
        judged += [(patient, f"SYN-TRIAL-{number:05}", score) for patient, score in family.get("fits", {}).items()]
    raw = ("\n".join(lines) + "\n").encode()
    (options.folder / "records.jsonl.gz").write_bytes(gzip.compress(raw, 9, mtime=0))
    queries = [
        json.dumps({"_id": name, "text": note.strip(), "metadata": {}}) for name, note in written["patients"].items()
    ]
    (options.folder / "queries.jsonl").write_text("\n".join(queries) + "\n", encoding="utf-8")
    rows = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in sorted(judged))]
    (options.folder / "qrels.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    eligible = sum(score == 2 for _, _, score in judged)
    print(f"{len(lines)} trials, {eligible} eligible, {len(judged) - eligible} near misses")


if __name__ == "__main__":
    main()
