"""The write-up says what the data say: texts, figures and page are held to the files that they quote."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from docgemma.cli import app

pytest.importorskip("matplotlib")
pytest.importorskip("nbformat")
ROOT = Path(__file__).parents[1]
WRITEUP = ROOT / "writeup"
sys.path.insert(0, str(WRITEUP))  # its scripts run from their own folder
import facts as facts_of  # noqa: E402
import impact  # noqa: E402
import plots  # noqa: E402
import texts  # noqa: E402
import tour  # noqa: E402

sys.path.remove(str(WRITEUP))

PAGES = ("writeup.md", "model_card.md", "safety_case.md")
ALLOWED = (  # numbers that are names, or the level of an interval
    "MedGemma 1.5 4B", "Gemma 3 270M", "Gemma 3", "NF4", "4-bit", "T4", "float16", "float32", "FHIR R4",
    "95 %", "95th percentile", "SHA-256",
)  # fmt: skip
COUNTED = ("On two CPU cores", "under three minutes", "write twice")
NUMBER_WORDS = re.compile(  # not "one", which is a pronoun more often
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|hundreds?|thousands?|dozens?|half|twice)\b",
    re.IGNORECASE,
)
CALL = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


def read(name: str) -> str:
    return (WRITEUP / name).read_text(encoding="utf-8")


def facts() -> "facts_of.Facts":
    return facts_of.Facts(ROOT, warn=False)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The data files that the texts quote, to be changed."""
    shutil.copytree(ROOT / "data", tmp_path / "data")
    shutil.rmtree(tmp_path / "data" / "results")
    for name in ("tests/test_injection.py", "docgemma/demo/scenarios.yaml", "Makefile"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("text", texts.TEXTS)
def test_a_text_says_what_the_data_say(text: str) -> None:
    assert read(text) == texts.render(text, facts()), "run: python writeup/build.py"


@pytest.mark.parametrize("text", ("writeup.md", "model_card.md"))
def test_another_figure_makes_another_text(text: str, copied: Path) -> None:
    stored = copied / facts_of.HELD_OUT
    changed = json.loads(stored.read_text(encoding="utf-8"))
    for row in changed["rows"]:
        if (row["capability"], row["difficulty"]) == ("intent", "all"):
            row["right"] -= 1
    stored.write_text(json.dumps(changed), encoding="utf-8")
    assert texts.render(text, facts_of.Facts(copied, warn=False)) != read(text)


@pytest.mark.parametrize(
    "name", ["writeup.template.md", "model_card.template.md", "safety_case.template.md", "medgemma.j2"]
)
def test_no_number_of_a_text_is_written_by_hand(name: str) -> None:
    template = re.sub(r"\{#.*?#\}", "", read(name), flags=re.DOTALL)
    by_hand = CALL.sub("", template)
    for name in sorted(ALLOWED, key=len, reverse=True):
        by_hand = by_hand.replace(name, "")
    by_hand = re.sub(r"`[^`]*`|\]\([^)]*\)", "", by_hand)  # names of files and commands
    assert re.findall(r".*\d.*", by_hand) == []
    for phrase in COUNTED:
        by_hand = by_hand.replace(phrase, "")
    assert NUMBER_WORDS.findall(by_hand) == []
    calls = [re.sub(r'"(before\.)?p95_s"|"medgemma\.j2"', "", call) for call in CALL.findall(template)]
    assert [call for call in calls if re.search(r"\d", call)] == []


BESIDE = {  # what a text must say close to a figure, by the figure's key
    "many users at once: users": "users", "many users at once: turns": "turns", "many users at once: errors": "errors",
    "many users at once: crosstalk": "another user's patient", "many users at once: median_s": "median",
    "many users at once: p95_s": "95th percentile", "many users at once: rss_mb.end": "MB of memory",
    "graded requests, latest round: n": "requests", "graded requests, latest round: A": "correctly answered",
    "graded requests, latest round: A, interval": "correctly answered",
    "graded requests, latest round: E": "could harm",
    "graded requests, latest round: C": "silently incomplete", "graded requests, latest round: D": "wrong",
    "graded requests, latest round: E, interval": "could harm",
    "graded conversations, latest round: A": "went right", "graded conversations, latest round: E": "could harm",
    "graded conversations, latest round: A, interval": "went right",
    "graded conversations, latest round: E, interval": "could harm",
    "orders, first run: demanded": "dangers they demanded", "orders, first run: harmless": "harmless orders",
    "number of experiment suites": "experiment suites", "number of published articles": "published articles",
    "rows that mislead, last samples": "of the rows misled", "cited: harm_poorer": "low- and middle-income",
    "cited: harm_africa": "African and South-East Asian", "cited: severe": "severe or threatens life",
    "cited: severe, year": "WHO review", "cited: prescribing, year": "BMC Medicine",
    "cited: unreliable_power": "without reliable electricity", "cited: unreliable_power, year": "WHO and others",
    "assumed: patients": "patients a year", "assumed: harmed": "suffer preventable harm",
    "assumed: prescribing": "begins with the order", "assumed: used": "entered through DocGemma",
    "assumed: visible": "visible to an order check", "assumed: found": "shown on the card",
    "assumed: acted_on": "warnings that change the order",
    "estimate: patients spared, low": "spared", "estimate: patients spared, likely": "are spared",
    "estimate: patients spared, high": "spared", "price in US dollars: laptop": "a used one",
    "price in US dollars: gpu_hour": "dollars an hour",
    "graded conversations, latest round: n": "conversations", "times the held-out items were scored": "scored",
    "held-out items that were judged": "requests", "number of drugs": "drugs", "number of tools": "Patient search",
    "number of interaction pairs": "interaction pairs", "number of planted instructions": "instructions",
    "number of synthetic patients": "synthetic", "number of questions of the first run": "questions",
    "MedGemma on a T4, GB, by arithmetic": "by arithmetic", "first tool (hard): count": "hard items",
    "first tool (easy): count": "easy ones", "size of data/edge/reader.npz, MB": "MB",
    "latest round: date": "the latest", "reader: parameters, millions": "million parameters",
}  # fmt: skip


class Keyed(facts_of.Facts):
    """Gives the key of a figure in its place."""

    def say(self, what: str, value: object, source: str) -> str:
        super().say(what, value, source)
        return f"⟦{what}⟧"


def test_every_figure_of_the_write_up_stands_beside_the_words_of_its_key() -> None:
    body = " ".join(texts.fill("writeup.template.md", Keyed(ROOT, warn=False)).split())
    body, seen = re.sub(r"\| ", "\n| ", body), set()
    for found in re.finditer(r"⟦(.*?)⟧", body):
        key = found[1]
        near = re.sub(r"⟦.*?⟧", "", body[max(0, found.start() - 110) : found.end() + 110])
        row = re.sub(r"\| ([^|]*) \|.*", r"\1", body[: found.start()].rsplit("\n| ", 1)[-1])
        capability = key.partition(" (all)")[0]
        if capability in plots.PLAIN:
            before = body[: found.start()]
            assert before.rfind(plots.PLAIN[capability]) == max(map(before.rfind, plots.PLAIN.values())), (key, row)
        elif capability.startswith("arguments "):
            assert plots.label(capability.split()[1]) in near, key
        else:
            assert key in BESIDE, f"say what stands beside {key!r}"
            assert BESIDE[key] in near, (key, near)
        seen.add(key)
    assert set(BESIDE) <= seen  # nothing is listed that no text quotes


def test_the_figures_of_a_run_stand_beside_the_words_of_their_keys(copied: Path) -> None:
    run = copied / facts_of.RUN
    run.mkdir(parents=True)
    row = {"capability": "intent", "difficulty": "all", "n": 10, "right": 5, "low": 0.2, "high": 0.8}
    parts = {
        "manifest": {"date": "2001-02-03", "gpus": ["GPU"]}, "heldout": {"rows": [row]},
        "natural": {"sets": [{"passed": 3, "total": 4}], "edge": {"passed": 1, "n": 4}},
        "speed": {"calls": [{"node": "tool_select", "median_s": 1.5}], "peak_gb": [9.5]},
    }  # fmt: skip
    for name, value in parts.items():
        (run / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    text = texts.fill("medgemma.j2", Keyed(copied, warn=False))
    assert "pass the checks" not in text and "not yet run" not in text
    for words in (
        "on ⟦MedGemma's run: gpus⟧ (⟦MedGemma's run: date⟧",
        "| Is a look-up needed? | ⟦intent (all): count⟧, ⟦intent (all): right⟧ (⟦intent (all): interval⟧) |",
        "checked by code: ⟦checks passed: MedGemma⟧ pass; the edge model, when they were new: ⟦checks passed: edge⟧",
        "Choosing a tool takes ⟦MedGemma: seconds of tool_select, median⟧ s (median), an answer",
        "peak memory of a GPU ⟦MedGemma: peak GB of a GPU⟧ GB",
    ):
        assert words in text


def test_that_medgemma_was_not_run_is_said_in_one_place() -> None:
    if facts().run():
        return
    for name in (*texts.TEXTS, "writeup.html"):
        assert read(name).count("not yet run") == (name in ("writeup.md", "writeup.html")), name
    assert "not yet run" not in read("writeup.template.md") and "not yet run" not in read("writeup.ipynb")


def test_the_readme_shows_the_same_place() -> None:
    assert texts.README.read_text(encoding="utf-8") == texts.readme(facts()), "run: python writeup/build.py"


def test_the_competition_text_is_below_1500_words_and_in_the_competitions_order() -> None:
    text = read("writeup.md")
    assert len(text.split()) < 1500
    headings = ["Project name", "Your team", "Problem statement", "Overall solution", "Technical details"]
    assert [
        line.removeprefix("### ").split(":")[0] for line in text.splitlines() if line.startswith("### ")
    ] == headings


def test_without_a_measurement_its_sentence_is_left_out_and_that_is_said(copied: Path, capsys) -> None:
    text = texts.render("writeup.md", facts_of.Facts(copied))
    assert "sealed round" not in text and "simulated users" not in text
    said = capsys.readouterr().err
    assert "data/results/natural.json" in said and "data/results/load_users.json" in said


def test_the_latest_round_is_quoted_where_one_is_stored(copied: Path) -> None:
    grades = {"n": 150, "A": 120, "B": 20, "C": 5, "D": 5, "E": 0}
    latest = {"date": "2026-11-22", "requests": grades, "conversations": {**grades, "n": 200}}
    (copied / facts_of.NATURAL).parent.mkdir()
    (copied / facts_of.NATURAL).write_text(json.dumps({"rounds": [{}, latest]}), encoding="utf-8")
    text = texts.render("model_card.md", facts_of.Facts(copied, warn=False))
    assert "| requests | 150 | 80 % | 13 % | 3 % | 3 % | 0 % |" in text
    assert "| conversations | 200 | 60 % |" in text


def test_the_card_is_of_the_weights_that_are_stored() -> None:
    digest = hashlib.sha256((ROOT / "data/edge/reader.npz").read_bytes()).hexdigest()
    card = json.loads((ROOT / facts_of.CARD).read_text(encoding="utf-8"))
    evaluated = json.loads((ROOT / facts_of.HELD_OUT).read_text(encoding="utf-8"))
    assert digest == card["sha256"], "run: python data/edge/kit/train.py"
    assert digest == evaluated["reader_sha256"], "run: python data/edge/kit/evaluate.py"


@pytest.mark.parametrize("name", plots.FIGURES)
def test_a_stored_figure_shows_the_present_data(name: str) -> None:
    from PIL import Image

    with Image.open(WRITEUP / "figures" / f"{name}.png") as picture:
        assert picture.info["Description"] == plots.fingerprint(facts()), "run: python writeup/build.py"


def test_the_page_shows_the_present_data_and_fetches_nothing() -> None:
    page = read("writeup.html")
    for name in plots.PLAIN:
        assert facts().right(name) in page, "run: python writeup/build.py"
    assert len(page.encode()) < 2_000_000
    assert not re.findall(r"<(?:script|link|iframe|object)\b", page)
    assert not [
        url for url in re.findall(r"""(?:src=|url\()["']?([^"')>]{1,40})""", page) if not url.startswith("data:")
    ]
    assert "Traceback (most recent" not in page and str(ROOT) not in page


@pytest.mark.parametrize("name", PAGES)
def test_what_a_text_points_to_is_there(name: str) -> None:
    text = read(name)
    for target in re.findall(r"\]\((?!https://)([^)]+)\)", text):
        assert (WRITEUP / target).exists(), target
    for path in re.findall(r"`((?:docgemma|data|tests|writeup)/[\w./-]+?)(?:::\w+)?`", text):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("name", PAGES)
def test_every_command_of_a_text_exists_with_its_options(name: str) -> None:
    commands = typer.main.get_command(app).commands
    for command, rest in re.findall(r"`docgemma (\w+)([^`]*)`", read(name)):
        assert command in commands, command
        options = [option for parameter in commands[command].params for option in parameter.opts]
        assert set(re.findall(r"--[a-z-]+", rest)) <= set(options), (command, rest)


def collected(cited: set[str], session: pytest.Session) -> set[str]:
    """Those of the cited tests that pytest collects: in this run, else in one of their own."""
    here = {item.nodeid.partition("[")[0] for item in session.items}
    if cited <= here:
        return cited
    options = ["-o", "addopts=-q --strict-markers --ignore=tests/browser", "--collect-only", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *sorted(cited)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}


def test_every_test_of_the_safety_case_exists_and_is_collected(request: pytest.FixtureRequest) -> None:
    case = tour.safety_case()
    cited = {test for _, tests in case for test in tests}
    assert len(cited) >= 30 and all(tests for _, tests in case)
    assert collected(cited, request.session) == cited


def test_the_tour_is_in_the_form_of_the_notebooks() -> None:
    notebook = json.loads(read("writeup.ipynb"))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    lines = sorted(len(cell["source"]) for cell in code)
    assert lines[len(lines) // 2] < 8 and lines[-1] <= 25
    assert not any(cell["outputs"] for cell in code)
    kinds = "".join(cell["cell_type"][0] for cell in notebook["cells"])
    assert kinds.startswith("mc") and "ccc" not in kinds


def test_the_estimate_rests_on_what_it_names_and_follows_the_readers_values() -> None:
    stored, rows = impact.stored(), impact.assumptions()
    cited = {name: entry["value"] for name, entry in stored["cited"].items()}
    assert [rows["harmed"][column] for column in impact.COLUMNS] == [
        cited["harm_richer"], cited["harm_poorer"], cited["harm_africa"]
    ]  # fmt: skip
    assert rows["prescribing"]["likely"] == cited["prescribing"]
    assert rows["acted_on"]["low"] == pytest.approx(1 - cited["overridden_most"])
    assert rows["acted_on"]["high"] == pytest.approx(1 - cited["overridden_least"])
    first = json.loads((ROOT / "data/results/orders.json").read_text(encoding="utf-8"))["rounds"][-1]
    assert rows["found"]["high"] == round(first["shown"] / first["demanded"], 2)
    assert all(row["low"] <= row["likely"] <= row["high"] for row in rows.values())
    before, after = impact.spared(rows), impact.spared(impact.assumptions({"used": 2 * rows["used"]["likely"]}))
    assert after["likely"] == pytest.approx(2 * before["likely"]) and after["low"] == before["low"]
    with pytest.raises(KeyError):
        impact.assumptions({"hope": 1.0})


def test_each_public_figure_names_a_source_with_its_year_and_an_address() -> None:
    for name in impact.stored()["cited"]:
        assert re.fullmatch(r"20\d\d", facts().year(name)) and facts().address(name).startswith("https://"), name
