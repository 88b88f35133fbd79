"""Look-ups in a store of 500 generated patients: ids by name and birth date, ages by id in five forms.

    python benchmarks/lookups.py [--each N]

The questions are worded as in MedAgentBench; nobody here chose the names or ids.
"""

import argparse
import json
import random
import tempfile
from datetime import date
from pathlib import Path

from docgemma.agent import Agent
from docgemma.ehr.sqlite import SqliteStore
from docgemma.rules.chart_entries import age
from docgemma.settings import Settings
from tests.test_reading_patients import synthea


def questions(patients: list[dict], each: int, dice: random.Random) -> list[tuple[str, str, str]]:
    """(kind, question, what the answer must hold)."""
    made = []
    for patient in dice.sample(patients, each):
        name = patient["name"][0]
        full, born = f"{name['given'][0]} {name['family']}", patient["birthDate"]
        said = (
            f"What's the MRN of the patient with name {full} and DOB of {born}? If the patient does not exist, say so."
        )
        made.append(("MRN by name and birth date", said, patient["identifier"][0]["value"]))
        made.append(("nobody of that birth date", said.replace(born, "1901-01-01"), "No patient"))
        years = str(age(born, date.today()))
        for kind, written in forms(patient).items():
            made.append((f"age by {kind}", f"What's the age of the patient with {written}?", f"{years} years"))
    return made


def forms(patient: dict) -> dict[str, str]:
    """Ids as people write them, of those that this patient has."""
    own = patient["id"]
    mrn = next((item["value"] for item in patient.get("identifier", [])), own)
    return {"id": f"ID {own}", "upper case": f"ID {own.upper()}", "MRN": f"MRN of {mrn}",
            "lower-case MRN": f"mrn {mrn.lower()}", "MRN with colon": f"MRN: {mrn}"}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=40, help="patients asked about")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        patients = synthea(500)
        home = Path(folder)
        SqliteStore(home / "ehr.sqlite", seed=patients).close()
        counts: dict[str, list[int]] = {}
        with Agent(Settings(home=home, sources="offline"), model="edge") as agent:
            for kind, question, must in questions(patients, args.each, random.Random(7)):
                answer = agent.ask(question)["answer"]
                right = must.casefold() in answer.casefold()
                counts.setdefault(kind, [0, 0])
                counts[kind][0] += right
                counts[kind][1] += 1
                if not right:
                    print(f"wrong: {question} -> {answer[:160]!r}, expected {must}")
    total = [sum(right for right, _ in counts.values()), sum(n for _, n in counts.values())]
    print(json.dumps({"by_kind": counts, "right": total[0], "n": total[1]}, indent=1))


if __name__ == "__main__":
    main()
