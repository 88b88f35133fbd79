"""The command line. `--json` prints one JSON object on stdout and nothing else there."""

import sys
from typing import NoReturn

import typer

from docgemma.cli import ask, ehr, eval, experiments, forget, kaggle, rcm, serve, snapshot, trials
from docgemma.cli.shared import AsJson, print_json, say
from docgemma.errors import DocGemmaError, kind_and_place

app = typer.Typer(
    name="docgemma", help="A clinical agent for small medical language models. Not a medical device.",
    no_args_is_help=False, pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip
GROUPS = {
    "ehr": ehr.app, "snapshot": snapshot.app, "demo": serve.demo_app, "kaggle": kaggle.app,
    "experiments": experiments.app, "trials": trials.app, "rcm": rcm.app,
}  # fmt: skip
for name, group in GROUPS.items():
    app.add_typer(group, name=name)
for command in (ask.ask, ask.chat, forget.forget, serve.mcp, serve.serve):
    app.command()(command)
app.command("eval")(eval.evaluate)

GREETING = """\
DocGemma answers clinical questions from tools and records. Decision support, not a medical device.

  docgemma ask "Check FDA warnings for dofetilide"
  docgemma ask "Find patient James Wilson and check his chart"    three of that name: it asks which one
  docgemma chat      turn after turn, here
  docgemma demo      the same in a browser
  docgemma doctor    what runs on this machine, and how to fix what does not

Everything else: docgemma --help. Completion of commands: docgemma --install-completion"""


@app.callback(invoke_without_command=True)
def greet(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        say(GREETING)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """What is installed, which model can run, what is reachable, and how to fix what is not."""
    from dataclasses import asdict

    from docgemma.doctor import examine
    from docgemma.settings import read_settings

    checks = examine(read_settings())
    if as_json:
        ok = all(check.ok for check in checks if check.needed)  # an extra that is not installed is no fault
        print_json({"checks": [asdict(check) for check in checks], "ok": ok})
        return
    for check in checks:
        say(f"{'ok' if check.ok else '--'}  {check.name}: {check.found}")
        if check.fix:
            say(f"      {check.fix}")


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
            command = getattr(error, "ctx", None)
            _fail(error.format_message() + (f" See: {command.command_path} --help" if command else ""), 2)
        if type(error).__name__ == "Abort":
            _fail("Stopped.", 1)
        what = f"Something went wrong that should not ({kind_and_place(error)})."
        _fail(f"{what} Run `docgemma doctor`, and report it.", 1)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(line: str, status: int) -> NoReturn:
    say(f"docgemma: {line}", err=True)
    sys.exit(status)
