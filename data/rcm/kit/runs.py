"""`docgemma eval` of the revenue-cycle agent's set: run it, keep what was asked for, and put it into words."""

import json
from pathlib import Path
from typing import Any

from docgemma.cli.shared import print_json, say
from docgemma.errors import ConfigError
from docgemma.paths import kit
from docgemma.settings import read_settings

golden = kit("rcm", "golden")


def evaluate(file: Path, as_json: bool, only: str | None, save: Path | None, plot: Path | None) -> bool:
    """Run the set, a line a case; whether each of its targets is held.

    Raises:
        ConfigError: `save` cannot be written.
    """
    cases, settings = golden.load_rcm_cases(file, only), read_settings()

    def finished(one: Any) -> None:
        if not as_json:
            mark = "pass" if not one.why else "LARGER" if one.case.needs_larger else "FAIL"
            say(f"{mark:4}  {one.case.id}  {one.seconds:.2f} s  {'; '.join(one.why)}".rstrip())

    done = golden.run_rcm_cases(cases, settings, progress=finished)
    report = golden.summarize_rcm(done, settings if only is None else None)  # one case is no run of the set
    if save:
        lines = [json.dumps({"id": one.case.id, "why": one.why, **one.told}, ensure_ascii=False) for one in done]
        try:
            save.write_text("\n".join([*lines, ""]), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{save} cannot be written: {error.strerror}.", hint="Choose another --save.") from error
    if plot:
        plots, targets = kit("experiments", "plots"), {name: limit for name, (_, limit) in golden.TARGETS.items()}
        plots.save(plots.trend(golden.kept_runs(settings), targets), plot)
    print_json(report) if as_json else _show(report)
    return bool(report["held"])


def _show(report: dict[str, Any]) -> None:
    found = report["metrics"]
    say(
        f"\n{report['passed']} of {report['total']} passed: {found['pass_rate']:.1%} "
        f"(95 % interval {found['low']:.1%} to {found['high']:.1%})."
    )
    for one in report["needs_larger"]:
        say(f"Needs a larger model: {one['id']}: {one['why']}")
    say(f"{found['claims']} claims and {found['verdicts']} verdicts were checked.")
    for name in ("faithfulness", "citation_accuracy", "review_loop_rate", "median_seconds"):
        say(f"  {name.replace('_', ' ')} {found[name]:g}")
    for one in report["targets"]:
        state = "held" if one["held"] else "MISSED"
        say(f"  {one['name'].replace('_', ' ')} {one['value']:g}, target {one['target']}: {state}")
