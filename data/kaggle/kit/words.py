"""Put into words what `docgemma kaggle build` made, and what `collect` took in."""

from typing import Any

from docgemma.cli.shared import say


def print_build(report: dict[str, Any]) -> None:
    """Print what `build.build` returned, and what to run next."""
    say(f"{report['folder']}: kernel {report['kernel']} ({report['kernel_bytes'] / 1e3:.0f} kB),")
    say(f"  dataset {report['dataset']} ({report['dataset_bytes'] / 1e6:.1f} MB). Checked for a T4:")
    for line in report["checks"]:
        say(f"  ok  {line['name']}: {line['found']}")
    say("Next (a token for it: kaggle.com, Settings, API; wait until the status is ready):")
    for command in report["commands"]:
        say(f"  {command}")
    say("After its run: kaggle kernels output " + report["kernel"] + " -p output && docgemma kaggle collect output")
    say("A later build of the dataset: kaggle datasets version -m new -p … instead of create.")


def print_collected(report: dict[str, Any]) -> None:
    """Print what `collect.collect` returned."""
    say(f"The run of {report['date']} is in data/results/medgemma; {len(report['changed'])} files changed.")
    for name, why in report["not_run"].items():
        say(f"  not run: {name}: {why}")
