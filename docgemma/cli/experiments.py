"""`docgemma experiments`: the suites, and what a model scores on them beside what the specification reports."""

from typing import Annotated, Any, Optional

import typer

from docgemma.cli.shared import AsJson, Model, print_json, quick_start, say

app = typer.Typer(help="Experiments: every claim of the design, measured on the loaded model.", rich_markup_mode=None)


@app.command("list")
def list_command(as_json: AsJson = False) -> None:
    """Every suite with its conditions, trials and the findings that it shows."""
    from docgemma.paths import kit

    suites: list[dict[str, Any]] = [
        {
            "name": suite.name, "part": suite.part, "question": suite.question,
            "conditions": [condition.name for condition in suite.conditions],
            "trials": sum(len(suite.cases_of(condition)) for condition in suite.conditions),
            "findings": sorted({finding for condition in suite.conditions for finding in condition.findings}),
        }
        for suite in kit("experiments", "suites").load_suites().values()
    ]  # fmt: skip
    if as_json:
        print_json({"suites": suites})
        return
    for suite in suites:
        say(f"{suite['name']}  (part {suite['part']}, {suite['trials']} trials)  {suite['question']}")
        say(f"    conditions: {'; '.join(suite['conditions'])}")
        say(f"    shows: {', '.join(suite['findings'])}")
    say(f"\n{sum(suite['trials'] for suite in suites)} trials. Run one: docgemma experiments run NAME, or all")


@app.command("run")
def run_command(
    suite: Annotated[str, typer.Argument(help="A suite's name, or all.")],
    model: Model = None,
    n: Annotated[Optional[int], typer.Option(min=1, help="Cases a condition; without it all.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Eight cases a condition, always the same.")] = False,
    seed: Annotated[int, typer.Option(help="Of what is sampled.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each with its own copy of the model.")] = 1,
    ray: Annotated[Optional[str], typer.Option(help="Address of a Ray cluster; local for this machine.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run stored trials again: the code has changed.")] = False,
    save: Annotated[bool, typer.Option("--save", help="Keep the rows in data/results/experiments.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a suite. One that was stopped goes on; trials that are stored are not run again."""
    with quick_start():
        from docgemma.llm.load import default_model
        from docgemma.paths import kit
        from docgemma.settings import read_settings

        runner, of_suites = kit("experiments", "runner"), kit("experiments", "suites")
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    settings, suites = read_settings(), of_suites.find_suites(suite)
    cases = of_suites.QUICK if quick else n
    name = model or settings.model or default_model(settings)
    screen, columns = Console(stderr=True), (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    shown = Progress(*columns, console=screen, disable=not screen.is_terminal)
    with shown:
        task = shown.add_task(suite)
        rows = runner.run_suites(
            suites, name, settings, n=cases, seed=seed, workers=workers, fresh=fresh, ray=ray,
            progress=lambda done, total: shown.update(task, completed=done, total=total),
        )  # fmt: skip
    table = kit("experiments", "tables").table
    measured = {item.name: table(item, rows, name == "edge") for item in suites}
    key = runner.model_key(name, settings)
    if save:
        kept = kit("experiments", "kept").save(key, measured, n=cases, seed=seed)
        say(f"Saved: {kept}", err=True)
    if as_json:
        print_json({"suite": suite, "model": key, "rows": [row for part in measured.values() for row in part]})
        return
    kit("experiments", "words").print_rows(suites, measured)
