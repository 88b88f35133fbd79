"""A suite: one question, put to labelled cases under several conditions. A YAML file each, in data/experiments."""

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from docgemma.errors import DocGemmaError, UsageError
from docgemma.paths import data_file, data_yaml

Case = dict[str, Any]
QUICK = 8  # cases a condition
OPTIONS = frozenset(
    "temperature max_tokens way describe shots prefix narrowing reversed nullable hints copied instruction show "
    "choices label reason words system add brief summary exchange errors headings ground reasoning_words".split()
)


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class CaseFileError(DocGemmaError):
    """A file of cases or of a suite cannot be used; the line names the case and what is wrong."""


class Block(BaseModel):
    """A part of such a file: unknown keys and other types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _known(options: dict[str, Any]) -> dict[str, Any]:
    if strange := options.keys() - OPTIONS:
        raise ValueError(f"no task knows the option {sorted(strange)}")
    return options


Options = Annotated[dict[str, Any], AfterValidator(_known)]


class Reported(Block):
    """A figure of the v3 specification. `share` only where it counts what the suite counts, so that it can be drawn."""

    text: Text
    section: Text
    share: Optional[float] = Field(default=None, ge=0, le=1)


class Condition(Block):
    """What is changed against the suite's base. `findings`: rows of reference/findings.yaml that it shows."""

    name: Text
    options: Options = Field({})
    where: dict[str, Any] = Field({})  # only cases with this value, or one of these values
    reported: Optional[Reported] = None
    findings: list[str] = Field([])


class Suite(Block):
    """`correct`: the checks that must hold. A condition's options are the suite's with its own on top."""

    name: Text
    part: Literal["I", "II", "III", "IV"]
    question: Text
    task: Literal["tool", "arguments", "plan", "quality", "decision", "answer"]
    cases: Text
    correct: list[str] = Field(min_length=1)
    base: Text
    options: Options = Field({})
    where: dict[str, Any] = Field({})
    conditions: list[Condition] = Field(min_length=1)

    def options_of(self, condition: Condition) -> dict[str, Any]:
        return {**self.options, **condition.options}

    def cases_of(self, condition: Condition, n: int | None = None) -> list[Case]:
        """The cases of a condition; with `n` every k-th of them, always the same."""
        wanted = {**self.where, **condition.where}
        chosen = [case for case in read_cases(self.cases) if all(_fits(case.get(key), wanted[key]) for key in wanted)]
        return chosen if n is None or n >= len(chosen) else [chosen[at * len(chosen) // n] for at in range(n)]


def _fits(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, list) else bool(value == wanted)


def load_suites(folder: Path | None = None) -> dict[str, Suite]:
    """Every suite by name, in order of parts.

    Raises:
        CaseFileError: a file cannot be used; the line names it and the key.
    """
    suites: list[Suite] = []
    for path in sorted((folder or data_file("experiments")).glob("*.yaml")):
        try:
            suite = Suite.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
            names = [condition.name for condition in suite.conditions]
            if suite.name != path.stem or suite.base not in names or len(set(names)) < len(names):
                raise ValueError("its name is the file's, its base one of its conditions, no condition stands twice")
        except (ValidationError, yaml.YAMLError, ValueError) as error:
            raise CaseFileError(f"{path} cannot be used: {' '.join(str(error).split())[:300]}.") from error
        suites.append(suite)
    return {suite.name: suite for suite in sorted(suites, key=lambda suite: suite.part)}


def find_suites(name: str) -> list[Suite]:
    """One suite, or every one with "all".

    Raises:
        UsageError: there is no such suite.
    """
    suites = load_suites()
    if name != "all" and name not in suites:
        raise UsageError(f"There is no suite {name!r}.", hint=f"Possible are all, {', '.join(suites)}.")
    return list(suites.values()) if name == "all" else [suites[name]]


@lru_cache(maxsize=20)
def read_cases(name: str) -> list[Case]:
    """The labelled cases of a file of data/experiments/cases."""
    cases: list[Case] = data_yaml("experiments", "cases", f"{name}.yaml")["cases"]
    return cases
