"""Make denials.csv from the tables of assumptions in README.md: invented requests, and what became of them."""

import csv
import random
from pathlib import Path

HERE = Path(__file__).parent
SEED, REQUESTS, MONTHS, FROM = 20261123, 6_000, 24, (2024, 10)
LETTER = ("billing code", "diagnosis code", "requested duration", "follow-up plan")  # what any request letter must hold
COLUMNS = ("id", "payer", "policy", "procedure", "month", "documented", "requested", "lacking", "outcome", "reason")
Table = dict[str, list[str]]


def tables() -> dict[str, Table]:
    """The tables under the headings of README.md: heading -> first cell -> the other cells."""
    found = {}
    for part in (HERE / "README.md").read_text(encoding="utf-8").split("\n### ")[1:]:
        rows = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")][2:]
        found[part.split(":")[0].splitlines()[0]] = {
            name.strip(): [cell.strip() for cell in cells] for name, *cells in rows
        }
    return found


def requests(reasons: dict[str, str]) -> list[tuple[object, ...]]:
    """Every request, in order. `reasons`: element -> the reason of a denial for want of it."""
    drawn, given = random.Random(SEED), tables()
    payers, procedures, elements = given["Payers"], given["Procedures"], given["Elements"]
    others = [(reason, float(chance)) for reason, (chance,) in given["Denials whatever is documented"].items()]
    rows: list[tuple[object, ...]] = []
    for number in range(1, REQUESTS + 1):
        payer, procedure = (_one(drawn, table) for table in (payers, procedures))
        _, needs, policies = procedures[procedure]
        demanded = [*needs.split("; "), *LETTER]
        lacking = [name for name in elements if name in demanded and drawn.random() < float(elements[name][0])]
        causes = [(reasons[name], float(elements[name][1])) for name in lacking] + others
        strict = float(payers[payer][1])
        reason = next((why for why, chance in causes if drawn.random() < min(0.98, chance * strict)), "")
        year, month = divmod(FROM[0] * 12 + FROM[1] - 1 + number * MONTHS // (REQUESTS + 1), 12)
        mine = dict(part.split(": ") for part in policies.split("; ") if part)
        there = [name for name in demanded if name not in lacking]
        rows.append((
            number, payer, mine.get(payer, ""), procedure, f"{year}-{month + 1:02}",
            "; ".join(name for name in there if name not in LETTER),
            "; ".join(name for name in there if name in LETTER), "; ".join(lacking),
            "denied" if reason else "approved", reason,
        ))  # fmt: skip
    return rows


def _one(drawn: random.Random, table: Table) -> str:
    return drawn.choices(list(table), [float(cells[0]) for cells in table.values()])[0]


def write(path: Path) -> None:
    import yaml

    words = yaml.safe_load((HERE / "words.yaml").read_text(encoding="utf-8"))
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows(requests({name: item["reason"] for name, item in words["elements"].items()}))


if __name__ == "__main__":
    write(HERE / "denials.csv")
