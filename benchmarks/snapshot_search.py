"""How long a search takes in a snapshot of 100,000 drug labels, and what building it costs.

    python benchmarks/snapshot_search.py [--labels N] [--articles N] [--trials N] [--seed N] [--keep FOLDER]

Labels are generated in the shape of openFDA's bulk files: half of them short over-the-counter ones (about 6 KB), half
long prescription ones (about 50 KB), of 3,000 invented drugs and the shipped ones, some drugs with very many labels,
one label in six of a combination, one in twelve not harmonised. On a busy machine read the last column: the processor's
time for one search.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from docgemma.knowledge.build import read_part
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.knowledge.snapshot import Snapshot
from docgemma.paths import kit

# names and sounds read better as text than as lists
ONSETS = "b br c d dr f fl g gl k l m n p pr r s t tr v z".split()
VOWELS = "a e i o u".split()
ENDINGS = "mab tinib pril sartan olol azole statin mycin cillin gliptin ide ine".split()
WORDS = """patients receiving treatment with this medicine may have an increased risk of serious reactions which were
    reported in clinical studies including hepatic renal cardiac bleeding events monitor closely during therapy and
    discontinue if symptoms occur the safety in pregnancy has not been established dose should be adjusted""".split()
PER_FILE = 20_000  # labels a file, as openFDA cuts them
REPEATS = 40


def invented(dice: random.Random, syllables: int) -> str:
    return "".join(dice.choice(ONSETS) + dice.choice(VOWELS) for _ in range(syllables))


class Generator:
    """The same labels for the same seed."""

    def __init__(self, seed: int):
        self.dice = random.Random(seed)
        shipped = [record.name for record, _ in read_part("drugs").records]
        self.drugs = [name for name in shipped if " and " not in name]
        self.drugs += [invented(self.dice, 3) + self.dice.choice(ENDINGS) for _ in range(3_000)]
        self.weights = [1 / (place + 5) for place in range(len(self.drugs))]
        self.brands = {drug: [invented(self.dice, 3).title() for _ in range(3)] for drug in self.drugs}
        self.combinations = [sorted(set(self.dice.choices(self.drugs, self.weights, k=2))) for _ in range(500)]
        self.sentences = [self._sentence() for _ in range(4_000)]

    def labels(self, count: int) -> Iterator[dict]:
        for number in range(count):
            several = self.dice.random() < 1 / 6
            parts = self.dice.choice(self.combinations) if several else self.dice.choices(self.drugs, self.weights)
            label = self._prescription(parts) if self.dice.random() < 0.5 else self._over_the_counter()
            label |= {
                "id": f"bench-{number}",
                "set_id": f"bench-set-{number}",
                "version": "1",
                "effective_time": f"20{self.dice.randrange(10, 26)}{self.dice.randrange(1, 13):02}01",
                "openfda": self._harmonised(parts) if self.dice.random() > 1 / 12 else {},
            }
            yield label

    def _harmonised(self, parts: list[str]) -> dict:
        brand = self.dice.choice(self.brands[parts[0]]) + (" Plus" if len(parts) > 1 else "")
        return {
            "generic_name": [", ".join(parts).upper()],
            "brand_name": [brand],
            "substance_name": [part.upper() for part in parts],
            "pharm_class_epc": ["Kinase Inhibitor [EPC]"],
        }

    def _prescription(self, parts: list[str]) -> dict:
        others = self.dice.choices(self.drugs, k=4)
        named = " ".join(f"Avoid concomitant use with {other}." for other in others)
        label = {
            "boxed_warning": [f"WARNING: SERIOUS REACTIONS {self._text(600)}"],
            "indications_and_usage": [self._text(1_500)],
            "dosage_and_administration": [f"The maximum daily dose is 40 mg. {self._text(5_000)}"],
            "contraindications": [f"4 CONTRAINDICATIONS {self._text(600)}"],
            "warnings_and_cautions": [f"5 WARNINGS AND PRECAUTIONS 5.1 Hepatotoxicity {self._text(9_000)}"],
            "drug_interactions": [f"7 DRUG INTERACTIONS 7.1 Effects {named} {self._text(4_000)}"],
            "adverse_reactions": [self._text(9_000)],
            "clinical_studies": [self._text(12_000)],
            "spl_medguide": [self._text(8_000)],
        }
        return label if self.dice.random() < 0.3 else {key: label[key] for key in label if key != "boxed_warning"}

    def _over_the_counter(self) -> dict:
        return {
            "purpose": ["Purpose Pain reliever"],
            "warnings": [f"Warnings Do not use {self._text(1_200)}"],
            "do_not_use": [f"Do not use {self._text(300)}"],
            "ask_doctor_or_pharmacist": [f"Ask a doctor before use if you are taking {self.dice.choice(self.drugs)}"],
            "dosage_and_administration": [self._text(1_000)],
            "package_label_principal_display_panel": [self._text(3_000)],
        }

    def _text(self, size: int) -> str:
        return " ".join(self.dice.choices(self.sentences, k=max(1, size // 90)))

    def _sentence(self) -> str:
        return " ".join(self.dice.choices(WORDS, k=self.dice.randrange(8, 20))).capitalize() + "."

    def article(self, number: int) -> dict:
        drug, other = self.dice.choices(self.drugs, self.weights, k=2)
        return {
            "id": f"bench{number}",
            "source": "MED",
            "title": f"{drug} and {other} in {self.dice.choice(('heart failure', 'asthma', 'breast cancer', 'gout'))}",
            "pubYear": "2025",
            "abstractText": self._text(1_500),
        }

    def study(self, number: int) -> dict:
        condition = self.dice.choice(("Breast Cancer", "Heart Failure", "Asthma", "Gout", "Type 2 Diabetes"))
        protocol = {
            "identificationModule": {
                "nctId": f"BENCH{number}",
                "briefTitle": f"Study of {self.dice.choice(self.drugs)}",
            },
            "statusModule": {"overallStatus": self.dice.choice(("RECRUITING", "COMPLETED"))},
            "descriptionModule": {"briefSummary": self._text(1_000)},
            "conditionsModule": {"conditions": [condition]},
        }
        return {"protocolSection": protocol}


def write_files(folder: Path, labels: int, articles: int, trials: int, seed: int) -> dict[str, list[Path]]:
    """Files in the shapes of the downloads."""
    generator, paths = Generator(seed), {"openfda": [], "ctgov": [], "literature": []}
    records, count = generator.labels(labels), -(-labels // PER_FILE)
    for part in range(count):
        path = folder / f"drug-label-{part + 1:04}-of-{count:04}.json.zip"
        paths["openfda"].append(path)
        with (
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
            archive.open(path.stem, "w", force_zip64=True) as file,
        ):
            file.write(b'{"meta": {"last_updated": "2026-01-01"}, "results": [')
            for number in range(min(PER_FILE, labels - part * PER_FILE)):
                file.write((b",\n" if number else b"\n") + json.dumps(next(records)).encode())
            file.write(b"]}")
    if articles:
        paths["literature"].append(folder / "articles.json")
        paths["literature"][0].write_text(json.dumps([generator.article(n) for n in range(articles)]))
    if trials:
        paths["ctgov"].append(folder / "studies.zip")
        with zipfile.ZipFile(paths["ctgov"][0], "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for number in range(trials):
                archive.writestr(f"BENCH{number}.json", json.dumps(generator.study(number)))
    return paths


def build(home: Path, folder: Path) -> None:
    """In a process of its own, so that the peak of memory is the build's alone."""
    find = {"openfda": "drug-label-*.zip", "ctgov": "studies.zip", "literature": "articles.json"}
    report = kit("knowledge", "bulk").build_from_files(
        home, **{kind: sorted(folder.glob(pattern)) for kind, pattern in find.items()}
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = Path(report["path"]).stat().st_size / 1e6
    cpu = time.process_time()
    print(
        f"built in {report['seconds']} s ({cpu:.0f} s of processor time), peak {peak:.0f} MB of memory, {size:.0f} MB"
    )
    for kind, part in report["kinds"].items():
        print(f"  {kind}: {part['count']}")
    for note in report["problems"] + report["left_out"]:
        print(f"  {note['file']}: {note['reason']}: {note['count']}")


def searches(home: Path, seed: int) -> dict[str, list[Callable[[], object]]]:
    """Forty of each kind."""
    snapshot, generator = Snapshot(home / "snapshot.sqlite", load_drug_names()), Generator(seed)
    dice, drugs = random.Random(seed + 1), generator.drugs
    some = [dice.choice(drugs[:300] if number % 2 else drugs) for number in range(REPEATS)]
    few = [dice.sample(drugs[:300], k=4) for _ in range(REPEATS)]
    words = ["heart failure", "breast cancer", "asthma", "serious reactions in pregnancy"] * (REPEATS // 4)
    label = lambda name: lambda: attempt(lambda: snapshot.label(name))  # noqa: E731
    pairs = lambda names: lambda: attempt(lambda: snapshot.interactions(names))  # noqa: E731
    return {
        "label, generic": [label(name) for name in some],
        "label, brand": [label(dice.choice(generator.brands[name])) for name in some],
        "label, with strength": [label(f"{name.title()} 50 mg tablet") for name in some],
        "label, one typo": [label(name[:3] + name[4] + name[3] + name[5:]) for name in some if len(name) > 5],
        "label, unknown": [label(f"xqzv{number}wkj") for number in range(REPEATS)],
        "interactions, 2 drugs": [pairs(names[:2]) for names in few],
        "interactions, 4 drugs": [pairs(names) for names in few],
        "literature": [lambda text=text: snapshot.literature(text).records for text in words],
        "trials": [lambda text=text: snapshot.trials(text, "recruiting").records for text in words],
    }


def attempt(action: Callable) -> list:
    from docgemma.errors import ToolError

    try:
        return action().records
    except ToolError as error:
        return error.details.get("suggestions", [])  # "did you mean" is what a typo is to find


def measure(home: Path, seed: int) -> None:
    found = searches(home, seed)
    cpu = time.process_time()
    first = timed(found["label, one typo"][0])
    cpu = (time.process_time() - cpu) * 1000
    print(f"first search for a typo, which indexes the names: {first:.1f} ms, {cpu:.1f} ms of processor time\n")
    print(f"{'search':22} {'n':>3} {'found':>6} {'median ms':>10} {'worst ms':>9} {'CPU ms':>7}")
    for kind, actions in found.items():
        answered = sum(bool(action()) for action in actions)
        cpu = time.process_time()
        times = [timed(action) for action in actions]
        cpu = (time.process_time() - cpu) * 1000 / len(actions)
        middle, worst = statistics.median(times), max(times)
        print(f"{kind:22} {len(times):>3} {answered:>6} {middle:>10.2f} {worst:>9.2f} {cpu:>7.2f}")


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--articles", type=int, default=20_000)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="make everything in this folder, use what is there, and keep it")
    parser.add_argument("--build", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.build:
        build(*options.build)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        home = folder / "home"
        if not (home / "snapshot.sqlite").exists():
            home.mkdir(parents=True, exist_ok=True)
            if not list(folder.glob("drug-label-*.zip")):
                write_files(folder, options.labels, options.articles, options.trials, options.seed)
            size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) / 1e6
            print(f"{options.labels} labels in {size:.0f} MB of files")
            subprocess.run([sys.executable, __file__, "--build", str(home), str(folder)], check=True)
        measure(home, options.seed)


if __name__ == "__main__":
    main()
