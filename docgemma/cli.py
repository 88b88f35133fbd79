"""The command line. `--json` prints one JSON object on stdout and nothing else there."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn, Optional

import typer

from docgemma.cli_demo import app as demo
from docgemma.cli_eval import evaluate
from docgemma.cli_kaggle import app as kaggle
from docgemma.cli_serve import serve
from docgemma.cli_snapshot import app as snapshot
from docgemma.cli_start import quick_start
from docgemma.errors import DocGemmaError, UsageError, kind_and_place

app = typer.Typer(
    name="docgemma", help="A clinical agent for small medical language models. Not a medical device.",
    no_args_is_help=False, pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip
ehr = typer.Typer(help="The record store: load, search and show FHIR R4 records.", rich_markup_mode=None)
app.add_typer(ehr, name="ehr")
app.add_typer(snapshot, name="snapshot")
app.add_typer(demo, name="demo")
app.add_typer(kaggle, name="kaggle")
app.command()(serve)
app.command("eval")(evaluate)

GREETING = """\
DocGemma answers clinical questions from tools and records. Decision support, not a medical device.

  docgemma ask "Check FDA warnings for dofetilide"
  docgemma ask "Find patient James Wilson and check his chart"    three of that name: it asks which one
  docgemma chat      turn after turn, here
  docgemma demo      the same in a browser
  docgemma doctor    what runs on this machine, and how to fix what does not

Everything else: docgemma --help. Completion of commands: docgemma --install-completion"""

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Graph = Annotated[str, typer.Option(help="The graph to run: v3.")]
Model = Annotated[
    Optional[str], typer.Option(help="edge, medgemma, server, a .gguf file, or a Hugging Face path or id.")
]
Image = Annotated[Optional[Path], typer.Option(help="A PNG, JPEG or DICOM file to look at.")]
Patient = Annotated[Optional[str], typer.Option(help="Id of the patient the question is about.")]


@app.callback(invoke_without_command=True)
def greet(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(GREETING)


@app.command()
def ask(
    question: Annotated[
        Optional[str], typer.Argument(help="What to ask; leave out to decide or take up a thread.")
    ] = None,
    graph: Graph = "v3",
    model: Model = None,
    image: Image = None,
    patient: Patient = None,
    thread: Annotated[Optional[str], typer.Option(help="Continue this stored conversation.")] = None,
    approve: Annotated[bool, typer.Option("--approve", help="Approve the record entry that waits.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Reject the record entry that waits.")] = False,
    edit: Annotated[Optional[str], typer.Option(help='Change it first: \'{"dosage": "250 mg"}\'.')] = None,
    as_json: AsJson = False,
) -> None:
    """Ask one question, or decide what a conversation is waiting for."""
    decision = _decision(approve, reject, edit)
    if question is None and thread is None:
        raise UsageError(
            "Nothing to do: no question and no --thread.", hint='Try: docgemma ask "What is hypertension?"'
        )
    with _agent(graph, model, quiet=as_json, wait=False) as agent:
        from docgemma import terminal

        screen = terminal.Screen(live=not as_json)
        if question is not None:
            result = agent.ask(question, thread=thread, image=image, patient=patient, on_event=screen.event)
            if decision and result["pending_write"]:
                result = agent.decide(result["thread"], *decision, on_event=screen.event)
        elif decision:
            result = agent.decide(thread, *decision, on_event=screen.event)
        else:
            result = agent.proceed(thread, on_event=screen.event)
        if result["pending_write"] and not as_json and sys.stdin.isatty():
            result = terminal.settle(agent, result, screen)
    _print_json(result) if as_json else screen.result(result)


@app.command()
def chat(
    graph: Graph = "v3",
    model: Model = None,
    image: Image = None,
    patient: Patient = None,
    thread: Annotated[Optional[str], typer.Option(help="Continue this stored conversation.")] = None,
) -> None:
    """Talk turn after turn in the terminal. An empty line or Ctrl-D ends it; Ctrl-C stops a turn."""
    with _agent(graph, model) as agent:
        from docgemma import terminal

        terminal.chat(agent, thread=thread, image=image, patient=patient)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """What is installed, which model can run, what is reachable, and how to fix what is not."""
    from docgemma.doctor import examine
    from docgemma.settings import read_settings

    checks = examine(read_settings())
    if as_json:
        ok = all(check.ok for check in checks if check.needed)  # an extra that is not installed is no fault
        _print_json({"checks": [check.as_dict() for check in checks], "ok": ok})
        return
    from docgemma.terminal import doctor_table

    doctor_table(checks)


@app.command()
def mcp(
    http: Annotated[bool, typer.Option("--http", help="Streamable HTTP with a token, instead of stdio.")] = False,
    host: Annotated[str, typer.Option(help="Address; the default stays on this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port for --http; 0 takes a free one.")] = 8765,
) -> None:
    """The ten tools as an MCP server. Writes ask the person through the client, and refuse where it cannot ask."""
    from docgemma.tools.mcp_server import run_mcp

    run_mcp(http, host, port)


@ehr.command("load")
def ehr_load(
    files: Annotated[list[Path], typer.Argument(help="FHIR R4 bundles, NDJSON or single resources.")],
    as_json: AsJson = False,
) -> None:
    """Load FHIR R4 resources into the record store. One bad resource does not lose the others."""
    from docgemma.ehr.load import load_files

    with _store(create=True) as store:
        report = load_files(store, files, on_progress=_progress)
    if as_json:
        _print_json(report.as_dict())
    else:
        typer.echo(f"Loaded {report.loaded} resources; skipped {len(report.skipped)}.")
        for item in report.skipped[:20]:
            typer.echo(f"  {item}", err=True)
    if not report.loaded:
        raise UsageError("Nothing was loaded.", hint="The lines above say why.")


@ehr.command("search")
def ehr_search(name: str, as_json: AsJson = False) -> None:
    """Find patients by name; a typo is forgiven, and said."""
    if not name.strip():
        raise UsageError("The name is empty.", hint="docgemma ehr search 'Maria Garcia'")
    with _store() as store:
        found = store.search_patients(name)
    if as_json:
        _print_json({"patients": [_patient(match) for match in found], "source": store.name})
        return
    from docgemma.terminal import patient_table

    patient_table(name, found)


@ehr.command("show")
def ehr_show(patient_id: str, as_json: AsJson = False) -> None:
    """A patient's chart: problems, medications, allergies, results, notes."""
    from docgemma.ehr.summary import print_chart, summarize

    with _store() as store:
        chart = store.chart(patient_id.strip())
    if chart is None:
        raise UsageError(
            f"There is no patient with the id {patient_id!r}.", hint="Look one up: docgemma ehr search NAME"
        )
    if as_json:
        _print_json(summarize(chart))
        return
    print_chart(summarize(chart))


def main() -> None:
    """Run the command line; every failure becomes one line on stderr and its exit status."""
    try:
        status = app(standalone_mode=False)
    except DocGemmaError as error:
        _fail(error.line(), error.exit_code)
    except KeyboardInterrupt:
        _fail("Stopped. The conversation stays usable.", 1)
    except Exception as error:
        if hasattr(error, "exit_code") and hasattr(error, "format_message"):  # click's usage errors
            _fail(f"{error.format_message()}{_help(error)}", 2)
        if type(error).__name__ == "Abort":
            _fail("Stopped.", 1)
        _fail(
            f"Something went wrong that should not ({kind_and_place(error)}). Run `docgemma doctor`, and report it.", 1
        )
    sys.exit(status if isinstance(status, int) else 0)


def _decision(approve: bool, reject: bool, edit: str | None) -> tuple[str, dict[str, Any]] | None:
    if sum((approve, reject, edit is not None)) > 1:
        raise UsageError("Choose one of --approve, --reject and --edit.")
    if edit is None:
        return ("approve", {}) if approve else ("reject", {}) if reject else None
    try:
        changes = json.loads(edit)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"--edit is not JSON ({error.msg}).", hint='Write it like: --edit \'{"dosage": "250 mg"}\''
        ) from error
    if not isinstance(changes, dict):
        raise UsageError("--edit must be a JSON object.", hint='Write it like: --edit \'{"dosage": "250 mg"}\'')
    return "edit", changes


def _agent(graph: str, model: str | None, quiet: bool = False, wait: bool = True):
    with quick_start():
        from docgemma.agent import Agent

        return Agent(model=model, graph=graph, on_progress=_silent if quiet else _progress, wait=wait)


def _store(create: bool = False):
    from contextlib import closing

    from docgemma.ehr.open import open_store
    from docgemma.settings import read_settings

    return closing(open_store(read_settings(), create=create))


def _patient(match: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(match)


def _progress(line: str) -> None:
    typer.echo(line, err=True)


def _silent(line: str) -> None:
    """Progress is not wanted where a program reads."""


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")


def _help(error: Any) -> str:
    """Where a usage error's command is explained."""
    context = getattr(error, "ctx", None)
    return f" See: {context.command_path} --help" if context else ""


def _fail(line: str, status: int) -> NoReturn:
    print(f"docgemma: {line}", file=sys.stderr)
    sys.exit(status)
