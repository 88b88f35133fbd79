"""How long it takes to find the patients of a request among 100,000.

    python -m benchmarks.link_patients [--patients N] [--seed N] [--keep FILE]

The patients are those of ehr_search.py (long lists of namesakes, many invented names), with UUID ids and MRNs. The file
is kept in the system's folder for temporary files and used again.
"""

import argparse
import random
import statistics
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing
from itertools import islice, pairwise
from pathlib import Path

from benchmarks.ehr_search import FAMILY, people, timed, typo
from docgemma.ehr.sqlite import SqliteStore
from docgemma.reading.patients import PatientLink, link_patients

LIMIT_MS = 20.0
REPEATS = 60
WALK = "Seen today, no chest pain, may walk a mile, will return in a week; an ECG was normal and labs are due. "
# a caller knows English words and drugs; among invented names there are many that look like one
ORDINARY = frozenset(
    f"""{WALK} what are the latest labs of show me potassium is creatinine back does take born allergies chart
    compare and today maximum dose metformin at egfr""".lower()
    .replace(",", " ")
    .replace(".", " ")
    .split()
)
Case = tuple[str, list[tuple[int, int]]]  # the text, and the places marked as names


def patients(count: int, seed: int) -> Iterator[dict]:
    dice = random.Random(seed + 2)
    for number, person in enumerate(people(count, seed)):
        mrn = [{"system": "urn:mrn", "value": f"S{6_000_000 + number}"}]
        yield {**person, "id": str(uuid.UUID(int=dice.getrandbits(128), version=4)), "identifier": mrn}


def cases(count: int, seed: int) -> dict[str, list[Case]]:
    """Requests by kind, about patients who are there, but for the last two kinds."""
    dice = random.Random(seed + 1)
    some = list(islice(patients(count, seed), 0, count, max(1, count // REPEATS)))[:REPEATS]
    pairs = [(person["name"][0]["given"][0], person["name"][0]["family"]) for person in some]
    return {
        "full name": [_case(f"what are the latest labs of {given} {family}?") for given, family in pairs],
        "full name, marked": [_case("show me ", f"{given} {family}", " labs") for given, family in pairs],
        "last, first": [_case(f"{family.upper()}, {given.lower()} potassium") for given, family in pairs],
        "surname alone": [_case(f"is {family}'s creatinine back") for _, family in pairs],
        "2,000 namesakes": [_case(f"what does {dice.choice(FAMILY)} take") for _ in pairs],
        "name and birth date": [
            _case(f"{given} {family}, born {person['birthDate']}, allergies")
            for (given, family), person in zip(pairs, some, strict=True)
        ],
        "UUID": [_case(f"chart of {person['id']}") for person in some],
        "MRN": [_case(f"MRN {person['identifier'][0]['value'].lower()} INR") for person in some],
        "two patients": [_case(f"compare {one[0]} {one[1]} and {two[0]} {two[1]}") for one, two in pairwise(pairs)],
        "initial, marked": [_case("labs of ", f"{given[0]}. {family}", "") for given, family in pairs],
        "typo, marked": [_case("labs of ", f"{given} {typo(family, dice)}", " today") for given, family in pairs],
        "long note": [_case(f"{WALK * 8} {given} {family}") for given, family in pairs],
        "nobody": [_case("what is the maximum dose of metformin at an eGFR of 35?")] * REPEATS,
        "nobody, marked": [_case("labs of ", f"Xqq{number} Zvvk{number}", "") for number in range(REPEATS)],
    }


def _case(before: str, marked: str = "", after: str = "") -> Case:
    return before + marked + after, [(len(before), len(before) + len(marked))] if marked else []


def stored(path: Path, count: int, seed: int) -> Path:
    """The file with these patients; filled once."""
    if not path.exists():
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        with closing(SqliteStore(part)) as store:
            rest = patients(count, seed)
            while batch := list(islice(rest, 5000)):
                store.save(batch)
        part.rename(path)
    return path


def measure(path: Path, count: int, seed: int) -> None:
    everything: list[float] = []
    with closing(SqliteStore(path)) as store:
        first = timed(lambda: link_patients("Jhoon Simthh", store, [(0, 12)]))
        print(f"first request with a typo, which reads the vocabulary: {first * 1000:.1f} ms\n")
        print(f"{'request':20} {'n':>3} {'linked':>6} {'one':>4} {'median ms':>10} {'p95 ms':>7} {'worst':>6}")
        for kind, requests in cases(count, seed).items():
            links = [linked_in(case, store) for case in requests]
            times = [timed(lambda case=case: linked_in(case, store)) * 1000 for case in requests]
            everything += times
            linked = sum(any(link.candidates for link in item) for item in links)
            one = sum(bool(item) and all(len(link.candidates) == 1 for link in item) for item in links)
            figures = f"{statistics.median(times):>10.2f} {_p95(times):>7.2f} {max(times):>6.1f}"
            print(f"{kind:20} {len(times):>3} {linked:>6} {one:>4} {figures}")
    middle, p95 = statistics.median(everything), _p95(everything)
    print(f"\nall: median {middle:.2f} ms, p95 {p95:.2f} ms, {'' if p95 < LIMIT_MS else 'NOT '}under {LIMIT_MS:.0f} ms")


def linked_in(case: Case, store: SqliteStore) -> list[PatientLink]:
    return link_patients(case[0], store, case[1], ordinary=ORDINARY.__contains__)


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--patients", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="make the file here instead")
    options = parser.parse_args(arguments)
    name = f"docgemma-link-{options.patients}-{options.seed}.sqlite"
    path = options.keep or Path(tempfile.gettempdir()) / name
    seconds = timed(lambda: stored(path, options.patients, options.seed))
    print(f"{options.patients} patients ready in {seconds:.1f} s, {path.stat().st_size / 1e6:.0f} MB")
    measure(path, options.patients, options.seed)


if __name__ == "__main__":
    main()
