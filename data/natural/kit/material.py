"""What a writer and a grader of a sealed set may see, as plain files: charts, knowledge records, the two briefs.

    python data/natural/kit/material.py FOLDER

Nothing of the code, the rules or the other sets is among it.
"""

import argparse
import json
import shutil
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from docgemma.cli.terminal import Terminal
from docgemma.ehr.open import seed_resources
from docgemma.ehr.sqlite import SqliteStore
from docgemma.ehr.summary import print_chart, summarize
from docgemma.paths import data_file

RECORDS = ("conditions.jsonl", "doses.jsonl", "drugs.jsonl", "interactions.jsonl", "literature.jsonl", "trials.jsonl")
HERE = Path(__file__).parent


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(argv).folder
    (folder / "snapshot").mkdir(parents=True, exist_ok=True)
    (folder / "charts.txt").write_text(charts(), encoding="utf-8")
    for name in RECORDS:
        shutil.copy(data_file("knowledge", name), folder / "snapshot" / name)
    for name in ("WRITER.md", "GRADER.md"):
        shutil.copy(HERE / name, folder / name)
    print(folder)
    return 0


def charts() -> str:
    """Every synthetic chart as `docgemma ehr show` prints it, with the MRN that the chart does not show."""
    pages = []
    with tempfile.TemporaryDirectory() as home:
        store = SqliteStore(str(Path(home) / "ehr.sqlite"), seed=seed_resources())
        for patient in (entry for entry in seed_resources() if entry["resourceType"] == "Patient"):
            chart = store.chart(patient["id"])
            assert chart is not None
            with redirect_stdout(StringIO()) as printed:
                print_chart(summarize(chart), Terminal())
            numbers = json.dumps([item.get("value") for item in patient.get("identifier", [])])
            pages.append(f"##### {patient['id']}  identifiers: {numbers}\n{printed.getvalue()}")
        store.close()
    return "\n".join(pages)


if __name__ == "__main__":
    sys.exit(main())
