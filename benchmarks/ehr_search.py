"""How long a name search takes among 100,000 patients.

    python benchmarks/ehr_search.py [--patients N] [--seed N] [--keep FILE]

Names are generated: about 40 % from a short list of very common ones, the rest from 8,000 invented given and 25,000
invented family names, so that there are both long lists of namesakes and a large vocabulary to correct a typo against.
On a busy machine read the last column: the processor's time for one search.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from docgemma.ehr.sqlite import SqliteStore

# names and sounds read better as text than as lists
GIVEN = "James Mary John Maria Robert Ana Michael Fatima David Mohammed Wei Yan Aisha José Olga Ivan Anna Peter".split()
FAMILY = "Smith Garcia Wilson Nguyễn Johnson Müller Kowalski Silva Khan Chen Kim Singh O'Brien Rossi Ivanov".split()
ONSETS = "b br c ch d dr f g gr h j k kl l m n p pr r s sch st t tr v w z".split()
VOWELS = "a e i o u ai ei ou á é ö ü".split()
CODAS = ["", "", "n", "r", "s", "l", "m", "ck", "tz", "nd"]
REPEATS = 40


def people(count: int, seed: int) -> Iterator[dict]:
    """`count` Patient resources, the same for the same seed."""
    dice = random.Random(seed)
    given_names = [invented(dice, 2) for _ in range(8_000)]
    family_names = [invented(dice, 3) for _ in range(25_000)]
    for number in range(count):
        given = dice.choice(GIVEN if dice.random() < 0.4 else given_names)
        family = dice.choice(FAMILY if dice.random() < 0.4 else family_names)
        born = f"{dice.randrange(1930, 2026)}-{dice.randrange(1, 13):02}-{dice.randrange(1, 29):02}"
        name = [{"use": "official", "given": [given], "family": family}]
        yield {"resourceType": "Patient", "id": f"bench-{number}", "name": name, "birthDate": born, "gender": "unknown"}


def invented(dice: random.Random, syllables: int) -> str:
    parts = (dice.choice(ONSETS) + dice.choice(VOWELS) for _ in range(dice.randrange(1, syllables + 1)))
    return ("".join(parts) + dice.choice(CODAS)).capitalize()


def queries(seed: int, count: int) -> dict[str, list[str]]:
    """Forty of each kind, of patients who are there, but for the last kind."""
    dice = random.Random(seed + 1)
    some = [person["name"][0] for person in islice(people(count, seed), 0, count, max(1, count // REPEATS))][:REPEATS]
    pairs = [(name["given"][0], name["family"]) for name in some]
    return {
        "full name": [f"{given} {family}" for given, family in pairs],
        "last, first": [f"{family.upper()}, {given.lower()}" for given, family in pairs],
        "common full name": [f"{dice.choice(GIVEN)} {dice.choice(FAMILY)}" for _ in range(REPEATS)],
        "common family name": [dice.choice(FAMILY) for _ in range(REPEATS)],
        "beginning": [f"{given[0]}. {family}" for given, family in pairs],
        "one typo": [f"{given} {typo(family, dice)}" for given, family in pairs],
        "two typos": [f"{typo(given, dice)} {typo(family, dice)}" for given, family in pairs],
        "nobody": [f"Xqq{number} Zvvk{number}" for number in range(REPEATS)],
    }


def typo(word: str, dice: random.Random) -> str:
    """Two neighbours swapped."""
    place = dice.randrange(len(word) - 1)
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def fill(path: Path, count: int, seed: int) -> None:
    with closing(SqliteStore(path)) as store:
        rest = people(count, seed)
        while batch := list(islice(rest, 5000)):
            store.save(batch)


def measure(path: Path, count: int, seed: int) -> None:
    with closing(SqliteStore(path)) as store:
        first = timed(lambda: store.search_patients("Jhoon Simthh"))
        print(f"first search with a typo, which reads the vocabulary: {first * 1000:.1f} ms\n")
        print(f"{'query':20} {'n':>3} {'found':>6} {'guesses':>7} {'median ms':>10} {'worst ms':>9} {'CPU ms':>7}")
        for kind, names in queries(seed, count).items():
            answers = [store.search_patients(name) for name in names]
            cpu = time.process_time()
            times = [timed(lambda name=name: store.search_patients(name)) * 1000 for name in names]
            cpu = (time.process_time() - cpu) * 1000 / len(names)
            found, guessed = sum(map(bool, answers)), sum(bool(answer) and answer[0].guessed for answer in answers)
            middle, worst = statistics.median(times), max(times)
            print(f"{kind:20} {len(names):>3} {found:>6} {guessed:>7} {middle:>10.2f} {worst:>9.2f} {cpu:>7.2f}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--patients", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="make the file here and keep it")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder) / "ehr.sqlite"
        seconds = timed(lambda: fill(path, options.patients, options.seed))
        print(f"{options.patients} patients stored in {seconds:.1f} s, {path.stat().st_size / 1e6:.0f} MB")
        measure(path, options.patients, options.seed)


if __name__ == "__main__":
    main()
