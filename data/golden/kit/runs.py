"""`docgemma eval` of a set of the clinical agent: run it, keep what was asked for, and put it into words."""

import json
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from docgemma.cli.shared import print_json, say
from docgemma.errors import ConfigError, UsageError
from docgemma.paths import kit
from docgemma.settings import read_settings

golden = kit("golden", "golden")


def evaluate(file: Path, as_json: bool, only: str | None, save: Path | None, plot: Path | None) -> bool:
    """Run the set, a line a case, and a summary. True: no target is set for it.

    Raises:
        UsageError: `plot` is of another set.
        ConfigError: `save` cannot be written.
    """
    if plot:
        raise UsageError("--plot draws the runs of the revenue-cycle agent only.", hint="Leave it out.")
    cases = kit("golden", "cases").load_cases(file, only)  # before a file of an earlier run is written over
    try:
        saved = save.open("w", encoding="utf-8", buffering=1) if save else None
    except OSError as error:
        raise ConfigError(f"{save} cannot be written: {error.strerror}.", hint="Choose another --save.") from error

    def finished(case: Any) -> None:
        if saved:  # a line at once, so that a stopped run keeps what it has
            saved.writelines(json.dumps(asdict(turn), ensure_ascii=False, default=str) + "\n" for turn in case.turns)
        if not as_json:
            say(f"{'pass' if case.passed else 'FAIL'}  {case.id}  {case.seconds:.2f} s  {case.why}".rstrip())

    with saved or nullcontext():
        report = golden.summarize(golden.run_cases(cases, read_settings(), progress=finished))
    if as_json:
        print_json(report)
        return True
    found = report["metrics"]
    say(
        f"\n{report['passed']} of {report['total']} passed: {found['share']:.1%} "
        f"(95 % interval {found['low']:.1%} to {found['high']:.1%}). {found['turns']} turns, median "
        f"{found['median_seconds']:.2f} s, 95th percentile {found['p95_seconds']:.2f} s."
    )
    return True
