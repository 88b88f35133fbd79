"""The Kaggle kernel: what is pushed, that it would run on a T4, that it does run on a CPU, from its folder alone."""

import ast
import json
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docgemma.cli.kaggle import app
from docgemma.errors import ConfigError, ModelError, UsageError
from docgemma.llm import medgemma
from docgemma.llm.compute import ComputeType
from docgemma.paths import kit
from docgemma.schemas import IntentClassification
from docgemma.settings import Settings
from tests import fresh
from tests.fresh import ROOT, empty_environment, fresh_python, run

building, t4, start = kit("kaggle", "build"), kit("kaggle", "t4"), kit("kaggle", "start")
PARTS, Evidence = kit("kaggle", "evidence").PARTS, kit("kaggle", "evidence").Evidence
KERNEL = ROOT / "kaggle_kernel.json"
LIMIT = 1_000_000  # bytes; Kaggle answers "The kernel source must be less than 1 megabytes in size."
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built folder. Its wheel is the session's one: that pip builds it is test_wheel's matter."""
    patch = pytest.MonkeyPatch()
    patch.setattr(building, "build_wheel", lambda folder, root: Path(shutil.copy(fresh.wheel(), folder)))
    folder = tmp_path_factory.mktemp("kaggle")
    building.build(folder, "jane-doe")
    patch.undo()
    return folder


@pytest.fixture(scope="module")
def working(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the kernel ran: "Run all" in an empty directory with an empty home, on the edge model."""
    return run_all(built, tmp_path_factory.mktemp("session"))


@pytest.fixture(scope="module")
def executed(working: Path) -> dict:
    return json.loads((working / "docgemma.ipynb").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def with_gemma(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a tiny random Gemma 3 that sees, in NF4: what it says is nonsense, the way is MedGemma's. One item
    of each set, and without the sections that add nothing but minutes here."""
    pytest.importorskip("torch")
    from tests.models import tiny_gemma3_folder

    folder = Path(shutil.copytree(built, tmp_path_factory.mktemp("gemma") / "built"))
    kernel = json.loads((folder / "docgemma.ipynb").read_text(encoding="utf-8"))
    left_out = ("01", "02", "03", "04", "06", "05-cell-ct-ask")
    kernel["cells"] = [cell for cell in kernel["cells"] if not cell["id"].startswith(left_out)]
    sample = named(kernel, "kernel-evidence-start")
    sample["source"] = [line.replace("else 2", "else 1") for line in sample["source"]]
    (folder / "docgemma.ipynb").write_text(json.dumps(kernel), encoding="utf-8")
    return run_all(folder, folder.parent, DOCGEMMA_MODEL=str(tiny_gemma3_folder()))


def run_all(built: Path, folder: Path, **settings: str) -> Path:
    """Install the package by the kernel's own cell and run every cell; the folder in which it did."""
    python = fresh_python(folder / "venv")
    working = shutil.copytree(built, folder / "working")
    spec = {"argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "fresh"}
    kernels = folder / "jupyter" / "kernels" / "fresh"
    kernels.mkdir(parents=True)
    (kernels / "kernel.json").write_text(json.dumps({**spec, "language": "python"}), encoding="utf-8")
    environment = empty_environment(folder, JUPYTER_PATH=str(folder / "jupyter"), PIP_NO_DEPS="1", **settings)
    command = [sys.executable, "-m", "jupyter", "execute", "--kernel_name=fresh", "--timeout=1200", "--inplace"]
    run(*command, "docgemma.ipynb", cwd=working, env=environment, timeout=2400)
    return working


def text_of(cell: dict) -> str:
    """What a cell shows as text."""
    shown = (out.get("text") or out.get("data", {}).get("text/plain") or "" for out in cell.get("outputs", []))
    return "\n".join("".join(part) for part in shown)


def named(notebook: dict, name: str) -> dict:
    return next(cell for cell in notebook["cells"] if cell["id"] == name)


def test_the_kernel_runs_from_its_folder_alone(executed: dict) -> None:
    code = [cell for cell in executed["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in code)
    assert not [out for cell in code for out in cell["outputs"] if out["output_type"] == "error"]
    assert "GPU not found" in text_of(named(executed, "kernel-pip"))


def test_without_a_gpu_it_says_so_and_goes_on_with_the_edge_model(executed: dict) -> None:
    said = text_of(named(executed, "kernel-start"))
    assert "Notice: there is no GPU" in said and "edge on CPU" in said


def test_its_answers_are_real(executed: dict) -> None:
    shown = json.dumps(executed["cells"])
    assert "boxed warning" in shown.lower()  # 00: the label of dofetilide
    assert "James Wilson" in shown  # 04: three of that name
    assert "generations on each GPU: one model" in text_of(named(executed, "kernel-ask-together"))


def test_no_step_of_a_section_stopped(executed: dict) -> None:
    stopped = [cell["id"] for cell in executed["cells"] if "This step stopped" in text_of(cell)]
    assert not stopped


def parts(working: Path) -> dict[str, dict]:
    return {path.stem: json.loads(path.read_text()) for path in (working / "docgemma-results").glob("*.json")}


def test_it_leaves_one_file_a_part(working: Path) -> None:
    found = parts(working)
    assert set(found) == {"manifest", *PARTS} and found["manifest"]["model"] == "edge"
    assert [name for name in PARTS if "not_run" in found[name]] in ([], ["experiments"])
    asked = {turn["question"] for turn in found["sections"]["turns"]}
    assert {"Check FDA warnings for dofetilide", "the second one", "What are his meds?"} <= asked
    assert all(turn["answer"] for turn in found["sections"]["turns"])


@pytest.mark.torch
@pytest.mark.slow
def test_it_measures_a_language_model_end_to_end(with_gemma: Path) -> None:
    kernel = json.loads((with_gemma / "docgemma.ipynb").read_text(encoding="utf-8"))
    assert not [out for cell in kernel["cells"] for out in cell.get("outputs", []) if out["output_type"] == "error"]
    assert "NF4" not in text_of(named(kernel, "kernel-start"))  # a folder's own model is taken as it is
    assert re.search(r"decoded (in fewer passes|plain)", text_of(named(kernel, "kernel-start")))
    found = parts(with_gemma)
    assert [name for name in PARTS if "not_run" in found[name]] in ([], ["experiments"])
    assert found["manifest"]["sample"] and found["heldout"]["items"] == found["manifest"]["sample"]
    nodes = {row["node"]: row for row in found["speed"]["calls"]}
    assert nodes["intent_classify"]["n"] >= 2 and nodes["intent_classify"]["median_s"] > 0
    assert found["scenarios"]["files"] and (with_gemma / "docgemma-results/scenarios").is_dir()
    assert len(found["natural"]["sets"]) == 2 and found["natural"]["edge"]["n"] > 100


def test_every_output_is_small(executed: dict) -> None:
    sizes = {cell["id"]: len(json.dumps(cell.get("outputs", []))) for cell in executed["cells"]}
    assert max(sizes.values()) < 150_000, sizes
    assert len(json.dumps(executed)) < 1_000_000


def test_the_folder_holds_what_the_push_names(built: Path) -> None:
    metadata = json.loads((built / "kernel-metadata.json").read_text())
    dataset = json.loads((built / "dataset" / "dataset-metadata.json").read_text())
    assert metadata["id"].startswith("jane-doe/") and metadata["dataset_sources"] == [dataset["id"]]
    assert (built / metadata["code_file"]).is_file()
    assert 6 <= len(dataset["title"]) <= 50 and 20 <= len(dataset["subtitle"]) <= 80
    assert 6 <= len(dataset["id"].split("/")[1]) <= 50 and len(dataset["licenses"]) == 1


def test_the_sizes_are_under_kaggles_limits(built: Path) -> None:
    (package,) = (built / "dataset").glob("*.whl")
    assert (built / "docgemma.ipynb").stat().st_size < LIMIT / 10
    assert LIMIT < package.stat().st_size < 100e6  # too large for the notebook, which is why there is a dataset
    assert "docgemma/data/edge/reader.npz" in zipfile.ZipFile(package).namelist()


def test_the_notebook_is_a_valid_one_with_no_output(built: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(built / "docgemma.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert not [cell for cell in notebook.cells if cell.get("outputs")]


def test_every_notebook_has_its_part_and_one_cell_chooses_the_model() -> None:
    kernel = building.build_kernel(NOTEBOOKS)
    sources = ["".join(cell["source"]) for cell in kernel["cells"] if cell["cell_type"] == "code"]
    assert sum(bool(re.search(r"^MODEL = ", source, re.MULTILINE)) for source in sources) == 1
    titles = [cell for cell in kernel["cells"] if "".join(cell["source"]).startswith("# ")]
    assert len(titles) == 1
    for path in NOTEBOOKS[:7]:
        assert any(cell["id"].startswith(path.stem[:2]) for cell in kernel["cells"]), path.name


def test_its_cells_use_no_name_that_no_cell_before_has_made() -> None:
    """A tagged cell may not lean on one that was left out."""
    known = {*dir(__builtins__), *__builtins__} if isinstance(__builtins__, dict) else set(dir(__builtins__))
    for cell in building.build_kernel(NOTEBOOKS)["cells"]:
        if cell["cell_type"] == "code":
            names = [node for node in ast.walk(ast.parse("".join(cell["source"]))) if isinstance(node, ast.Name)]
            known |= {node.id for node in names if not isinstance(node.ctx, ast.Load)} | bound(cell)
            assert not {node.id for node in names} - known, cell["id"]


def bound(cell: dict) -> set[str]:
    """Names that imports, functions, their arguments and `except` make."""
    made: set[str] = set()
    for node in ast.walk(ast.parse("".join(cell["source"]))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            made |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef):
            made |= {node.name}
        elif isinstance(node, ast.arg):
            made |= {node.arg}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            made |= {node.name}
    return made


def test_it_imports_nothing_that_it_does_not_install() -> None:
    """Beside Python's own and this package: its dependencies, and matplotlib and IPython, which every notebook has."""
    first = {"importlib", "subprocess", "sys", "tempfile", "pathlib"}
    allowed = sys.stdlib_module_names | {"docgemma", "pydicom", "PIL", "IPython", "matplotlib"}
    for cell in building.build_kernel(NOTEBOOKS)["cells"]:
        if cell["cell_type"] == "code":
            tree = ast.walk(ast.parse("".join(cell["source"])))
            modules = {node.module for node in tree if isinstance(node, ast.ImportFrom)}
            tree = ast.walk(ast.parse("".join(cell["source"])))
            modules |= {alias.name for node in tree if isinstance(node, ast.Import) for alias in node.names}
            assert {name.split(".")[0] for name in modules} <= allowed, cell["id"]
            if cell["id"] == "kernel-pip":
                assert {name.split(".")[0] for name in modules} <= first


def test_the_install_cell_replaces_a_transformers_below_the_tested_floor(built: Path) -> None:
    (package,) = (built / "dataset").glob("*.whl")
    archive = zipfile.ZipFile(package)
    (metadata,) = (name for name in archive.namelist() if name.endswith("METADATA"))
    assert re.search(
        r"^Requires-Dist: transformers>=5\.2[3-9].*extra ==", archive.read(metadata).decode(), re.MULTILINE
    )
    install = "".join(named(building.build_kernel(NOTEBOOKS), "kernel-pip")["source"])
    assert '"transformers"' not in install.split("KEEP = ")[1].splitlines()[0] and "[{'transformers,'" in install


def test_the_static_check_for_a_t4_passes() -> None:
    findings = {item.name: item for item in t4.check(building.read_metadata(KERNEL, "jane"))}
    assert all(item.ok for item in findings.values()), findings
    assert findings["Compute type"].found.startswith("float32")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"model_sources": []}, "Model"),
        ({"model_sources": ["google/gemma-3/transformers/gemma-3-4b-it/1"]}, "Model"),
        ({"enable_gpu": False}, "Accelerator"),
        ({"machine_shape": "NvidiaTeslaP100"}, "Accelerator"),
        ({"enable_internet": False}, "Internet"),
    ],
)
def test_a_kernel_that_would_not_run_fails_the_check(change: dict, line: str) -> None:
    findings = {item.name: item.ok for item in t4.check({**building.read_metadata(KERNEL, "jane"), **change})}
    assert not findings[line]


def test_a_kernel_computing_in_float16_fails_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t4, "compute_type", lambda device, capability: ComputeType("float16", "the usual choice"))
    findings = {item.name: item.ok for item in t4.check(building.read_metadata(KERNEL, "jane"))}
    assert not findings["Compute type"]


def test_the_memory_estimate_counts_every_parameter_of_the_model() -> None:
    """Against transformers' own Gemma 3 with MedGemma's shape, on no device; 4.3 B is what its model card says."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from docgemma.llm.hf_load import KEPT_WHOLE
    from docgemma.llm.prompt_cache import PREFIX_BYTES

    text = {"hidden_size": 2560, "num_hidden_layers": 34, "intermediate_size": 10240, "vocab_size": 262_208}
    text |= {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256}
    vision = {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16}
    vision |= {"image_size": 896, "patch_size": 14, "vision_use_head": False}
    config = transformers.Gemma3Config(text_config=text, vision_config=vision)
    with torch.device("meta"):
        model = transformers.Gemma3ForConditionalGeneration(config)
    counted = dict.fromkeys(t4.PARAMETERS, 0)
    for name, weights in model.named_parameters():
        whole = any(name.startswith(part) for part in KEPT_WHOLE)
        kind = "vision" if whole else "embedding" if "embed" in name else "norms" if "norm" in name else "linear"
        counted[kind] += weights.numel() if name != "lm_head.weight" else 0  # tied to the embedding
    assert counted == t4.PARAMETERS
    assert round(sum(counted.values()) / 1e9, 1) == 4.3 and t4.KEPT == PREFIX_BYTES


def test_more_text_needs_more_memory_and_a_weight_takes_half_a_byte() -> None:
    short, long = t4.memory("float32", 1024), t4.memory("float32", 8192)
    assert sum(short.values()) < sum(long.values()) < 15e9
    assert short["attention and MLP in NF4"] == pytest.approx(3.2086e9 * 0.5159, rel=1e-3)


@pytest.mark.parametrize("user", ["", "INSERT_USERNAME_HERE", "Jane Doe", "jane/doe", "../up", "jane--doe"])
def test_no_kernel_is_built_for_nobody(user: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Kaggle user"):
        building.build(tmp_path / "out", user)
    assert not (tmp_path / "out").exists()


def test_the_repositorys_own_file_names_nobody() -> None:
    metadata = json.loads(KERNEL.read_text())
    assert metadata["id"].split("/")[0] == metadata["dataset_sources"][0].split("/")[0] == "INSERT_USERNAME_HERE"
    assert metadata["id"].split("/")[1] == re.sub(r"[^a-z0-9]+", "-", metadata["title"].lower()).strip("-")
    assert 5 <= len(metadata["title"]) <= 50 and metadata["code_file"] == "docgemma.ipynb"
    assert (metadata["language"], metadata["kernel_type"]) == ("python", "notebook")


def test_a_step_that_fails_is_said_and_what_its_last_line_shows_is_shown(capsys: pytest.CaptureFixture) -> None:
    cell = "items = [1, 2]\n[\n    item\n    for item in items\n]"
    given = {"going_on": start.going_on, "display": print}
    exec(building.going_on(cell), given)
    exec(building.going_on('text = """one\ntwo\n"""\nassert text.split("\\n") == ["one", "two", ""]'), given)
    exec(building.going_on("items[7]"), given)
    exec(building.going_on("assert items == []"), given)
    said = capsys.readouterr().out
    assert "[1, 2]" in said and said.count("This step stopped: ") == 2 and "IndexError" in said
    assert building.going_on('NAME = "constant"') == 'NAME = "constant"'
    assert "display" not in building.going_on('print("said")')


def test_fast_decoding_that_fails_is_found_by_one_trial_and_plain_decoding_goes_on(scripted) -> None:
    scripted.fast = True

    def broken(*args, **kwargs):
        if scripted.fast:
            raise ModelError("The fast way fails.")
        return type(scripted).complete(scripted, *args, **kwargs)

    scripted.complete = broken
    scripted.enqueue("trial", IntentClassification(intent="DIRECT", task_summary="A question")).enqueue("trial", "High")
    assert start.trial(scripted) is scripted and scripted.fast is False


def test_a_model_that_says_nothing_is_not_taken(scripted) -> None:
    scripted.enqueue("trial", IntentClassification(intent="DIRECT", task_summary="A question")).enqueue("trial", "")
    with pytest.raises(ModelError, match="says nothing"):
        start.trial(scripted)


@pytest.mark.parametrize(("intent", "right"), [("TOOL_NEEDED", True), ("DIRECT", False)])
def test_on_a_held_out_item_the_model_decides_and_not_the_plan(scripted, intent: str, right: bool) -> None:
    evaluate = kit("edge", "evaluate")
    step = {"tool": "check_drug_safety", "args": {"drug_name": "dofetilide"}}
    item = {"id": "x", "difficulty": "easy", "question": "Check FDA warnings for dofetilide", "steps": [step]}
    scripted.enqueue("intent_classify", IntentClassification(intent=intent, task_summary="Warnings."))
    assert dict(evaluate.judge(item, evaluate.asking(scripted))["marks"]) == dict.fromkeys(
        ("intent", "first tool", "exact set of tools", "arguments", "arguments check_drug_safety"), right
    )
    assert scripted.nodes() == ["intent_classify"]


def test_a_part_that_fails_is_stored_with_its_reason_and_the_next_one_runs(tmp_path: Path, monkeypatch) -> None:
    evidence = Evidence("edge", 1, tmp_path / "out")
    monkeypatch.setattr(evidence, "natural", lambda: 1 / 0)
    for part in ("natural", "heldout"):
        evidence.run(part)
    stored = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "out").glob("*.json")}
    assert stored["natural"]["not_run"].startswith("ZeroDivisionError")
    assert stored["heldout"]["items"] == 1 and stored["manifest"]["sample"] == 1


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "build_wheel", lambda folder, root: Path(shutil.copy(fresh.wheel(), folder)))


def test_the_command_says_what_to_run_next(no_pip, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["build", "--user", "jane", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0 and "kaggle kernels push" in done.stdout and "12.7 GB of 15" in done.stdout
    again = CliRunner().invoke(app, ["build", "--out", str(tmp_path / "out"), "--json"], env={"KAGGLE_USERNAME": "joe"})
    assert json.loads(again.stdout)["kernel"].startswith("joe/")  # and the earlier build was replaced
    assert json.loads((tmp_path / "out" / "kernel-metadata.json").read_text())["is_private"] is False
    assert any("datasets create --public" in line for line in json.loads(again.stdout)["commands"])
    building.build(tmp_path / "out", "jane", private=True)
    assert json.loads((tmp_path / "out" / "kernel-metadata.json").read_text())["is_private"] is True
    assert len(list((tmp_path / "out" / "dataset").iterdir())) == 2


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="something else"):
        building.build(tmp_path, "jane")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_outside_a_checkout_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="built from the repository"):
        building.build(tmp_path / "out", "jane", root=tmp_path)


def test_a_notebook_that_cannot_be_read_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "00_broken.ipynb").write_text("{")
    with pytest.raises(ConfigError, match="00_broken"):
        building.build_kernel([tmp_path / "00_broken.ipynb"])


def test_the_attached_model_is_found_where_kaggle_mounts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted = tmp_path / "models/google/medgemma/transformers/medgemma-1.5-4b-it/1"
    mounted.mkdir(parents=True)
    (mounted / "config.json").write_text("{}")
    monkeypatch.setattr(medgemma, "KAGGLE_INPUT", tmp_path)
    assert medgemma.find_weights(tmp_path / "home") == mounted


@pytest.mark.parametrize(
    ("gpu", "weights", "words"), [(False, True, "no GPU"), (True, False, "google/medgemma"), (True, True, "")]
)
def test_what_medgemma_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gpu: bool, weights: bool, words: str
) -> None:
    monkeypatch.setattr(start, "nvidia_device", lambda: gpu)
    monkeypatch.setattr(start, "find_weights", lambda home: tmp_path if weights else None)
    lacking = start.missing(Settings(home=tmp_path))
    assert words in lacking if words else not lacking


def test_where_medgemma_cannot_be_loaded_the_edge_model_answers_with_a_notice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, scripted
) -> None:
    loads: list[str] = []

    def load(name: str, settings: Settings):
        loads.append(f"{name} on {settings.gpus}")
        if name == "medgemma":
            raise ConfigError("This model needs bitsandbytes.")
        return scripted

    monkeypatch.setenv("DOCGEMMA_GPUS", "1")
    monkeypatch.setattr(start, "missing", lambda settings: "")
    monkeypatch.setattr(start, "_gpus", lambda: 2)
    monkeypatch.setattr(start, "shared_model", load)
    assert start.ready() == "edge"
    assert loads == ["medgemma on 2", "edge on 2"]
    assert "Notice: This model needs bitsandbytes." in capsys.readouterr().out
