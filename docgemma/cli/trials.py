"""`docgemma trials`: find the trials that a patient may be eligible for, and measure how many are found."""

from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from docgemma.cli.shared import AsJson, Model, print_json, progress, say
from docgemma.errors import ModelError, UsageError
from docgemma.paths import kit

if TYPE_CHECKING:
    from docgemma.prescreen.records import Facts, Search
    from docgemma.prescreen.toolset import Orchestrator, Toolset
    from docgemma.settings import Settings

SHOWN = 20  # candidates in the terminal

app = typer.Typer(help="Clinical trials that a patient may be eligible for.", no_args_is_help=True)


@app.command()
def search(
    note: Annotated[Optional[str], typer.Option(help="What is known of the patient.")] = None,
    patient_file: Annotated[Optional[Path], typer.Option(help="A text file of it.")] = None,
    patient: Annotated[Optional[str], typer.Option(help="Id of a patient of the record store.")] = None,
    budget: Annotated[int, typer.Option(min=1, max=100, help="Calls at most.")] = 25,
    orchestrator: Annotated[str, typer.Option(help="local, or gemini (or a Gemini model's name).")] = "local",
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Search ClinicalTrials.gov for trials that the patient may be eligible for; a run that was cut off goes on."""
    from docgemma.graphs.prescreen import Tools, run
    from docgemma.memory import open_memory
    from docgemma.prescreen.registry import Registry
    from docgemma.prescreen.toolset import Toolset
    from docgemma.settings import read_settings

    settings = read_settings()
    facts = _facts(settings, note, patient_file, patient)
    judge = medical_model(model, settings)
    memory = open_memory(settings.db_location)
    with closing(Registry(settings)) as registry, closing(memory.conn):
        toolset = Toolset(registry, judge, budget)
        tools = Tools(toolset, orchestrated(orchestrator, settings, toolset), settings, judge)
        told = run(facts, tools, memory, orchestrator, on_search=_told)
    print_json(told) if as_json else _show(told)


def _facts(settings: "Settings", note: str | None, file: Path | None, patient: str | None) -> "Facts":
    """The facts of the one source that is given."""
    from docgemma.ehr.open import open_store
    from docgemma.prescreen.intake import read_chart, read_note

    if sum(source is not None for source in (note, file, patient)) != 1:
        raise UsageError("Give one of --note, --patient-file and --patient.")
    if patient is not None:
        with closing(open_store(settings)) as store:
            chart = store.chart(patient.strip())
        if chart is None:
            raise UsageError(f"There is no patient with the id {patient!r}.", hint="docgemma ehr search NAME")
        return read_chart(chart)
    try:
        return read_note(file.read_text(encoding="utf-8") if file else note or "")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read as text.", hint="Give a text file in UTF-8.") from error


def orchestrated(name: str, settings: "Settings", toolset: "Toolset") -> "Orchestrator":
    """The orchestrator of that name."""
    from docgemma.prescreen.next_search import Local

    if name == "local":
        return Local(toolset.expert is not None)
    if name != "gemini" and not name.startswith("gemini-"):
        raise UsageError(f"There is no orchestrator {name!r}.", hint="Choose local or gemini.")
    from docgemma.prescreen.gemini import MODEL, Gemini

    return Gemini(settings, MODEL if name == "gemini" else name, toolset.budget)


def medical_model(model: str | None, settings: "Settings") -> Any:
    """The model that is loaded as expert and judge; None where only the edge model runs, which is neither."""
    from docgemma.llm import load_llm

    if (model or settings.model or "edge") == "edge":
        return None
    try:
        return load_llm(model, settings, on_progress=progress)
    except ModelError as error:
        if model:
            raise
        progress(f"{error.line()} The search goes on without an expert.")
        return None


def _told(search: "Search") -> None:
    asked = ", ".join(str(value) for name, value in search["args"].items() if name not in ("page_size", "page_token"))
    brought = search.get("error") or f"{len(search['returned'])} trials, {len(search['new'])} new"
    progress(f"{asked[:60]}: {brought} ({search['why']})")


def _show(told: dict[str, Any]) -> None:
    for number, item in enumerate(told["candidates"][:SHOWN], 1):
        say(f"{number:>3}. {item['score']:.2f}  {item['nct_id']}  {item['title']} [{item['status']}]")
        say(f"      {item['reason']}")
        for judged in item["criteria"]:
            say(f"      {judged['verdict']:<8} {judged['kind']}: {judged['text']} - {judged['sentence'] or 'not said'}")
    say(f"{told['found']} trials in {sum(told['calls'].values())} of {told['budget']} calls.")
    for line in filter(None, (told["why_partial"] and f"Incomplete: {told['why_partial']}", told["not_screened"])):
        say(line)


@app.command("eval")
def evaluate(
    queries: Annotated[Optional[Path], typer.Option(help="queries.jsonl of TREC Clinical Trials.")] = None,
    qrels: Annotated[Optional[Path], typer.Option(help="Its qrels.tsv.")] = None,
    records: Annotated[Optional[Path], typer.Option(help="Serve these trials instead of asking the registry.")] = None,
    criteria: Annotated[Optional[Path], typer.Option(help="Labelled criteria, to be judged by the model.")] = None,
    budget: Annotated[int, typer.Option(min=1, max=100, help="Calls at most, a patient.")] = 25,
    ablation: Annotated[Optional[list[str]], typer.Option(help="full, no-expert, no-feedback, flat, filters.")] = None,
    orchestrator: Annotated[str, typer.Option(help="local, or gemini.")] = "local",
    model: Model = None,
    as_json: AsJson = False,
    plot: Annotated[Optional[Path], typer.Option(help="Draw recall against calls into this file.")] = None,
) -> None:
    """Measure the prescreen against judged trials, and the model against labelled criteria."""
    if bool(queries) != bool(qrels) or not (queries or criteria):
        raise UsageError("Give --queries and --qrels, or --criteria, or all three.")
    from docgemma.settings import read_settings

    runs, settings = kit("prescreen", "runs"), read_settings()
    expert = medical_model(model, settings)
    told: dict[str, Any] = {"model": expert.name if expert else None}
    if queries and qrels:
        told |= runs.measure(queries, qrels, ablation, budget, orchestrator, expert, settings, records, plot)
    if criteria:
        told["criteria"] = runs.judge(criteria, expert, settings)
    print_json(told) if as_json else runs.show(told)


@app.command("mock-server")
def mock_server(
    records: Annotated[Path, typer.Option(help="Studies as the API gives them, one JSON object a line; .gz too.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8011,
) -> None:
    """Answer as ClinicalTrials.gov v2 does, on 127.0.0.1, from a file of records; Ctrl-C ends it."""
    registry = kit("prescreen", "mock_server")
    with registry.open_server(records, port) as server, suppress(KeyboardInterrupt):
        say(f"{len(server.trials.studies)} trials. Use them with: export DOCGEMMA_CTGOV_URL={registry.address(server)}")
        server.serve_forever()
