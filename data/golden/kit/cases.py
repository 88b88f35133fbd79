"""A golden set: requests with what has to come of them, read from YAML and checked key by key before anything runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from docgemma.errors import UsageError
from docgemma.paths import kit
from docgemma.tools import toolbox

if TYPE_CHECKING:
    from data.experiments.kit.suites import Block, CaseFileError, Text
else:
    suites = kit("experiments", "suites")
    Block, CaseFileError, Text = suites.Block, suites.CaseFileError, suites.Text

WORDS = {"missing": "is missing", "extra_forbidden": "unknown key", "string_type": "is no text; put it in quotes"}


def alternatives(text: str) -> list[str]:
    """The texts of which one is enough: two of "5.3 | 5,3"."""
    return [part.strip() for part in text.split("|")]


def _filled(text: str) -> str:
    if not all(alternatives(text)):
        raise ValueError("holds an empty text")
    return text


Wanted = Annotated[str, AfterValidator(_filled)]  # a text that may hold alternatives


class Turn(Block):
    """One message, and what has to come of it."""

    ask: Text
    expected: str = ""  # one line for a person who grades
    must: list[Wanted] = Field([])
    must_not: list[Wanted] = Field([])
    tools: list[str] = Field([])
    card: dict[str, Wanted] | Literal["none"] | None = None  # "none": no card may be prepared; None: not checked
    status: Literal["answered", "needs_clarification", "needs_approval", "refused"] | None = None
    decide: Literal["approve", "reject"] | None = None  # what is clicked after the turn, where a card waits

    @field_validator("tools")
    @classmethod
    def _tools_exist(cls, names: list[str]) -> list[str]:
        known = {tool.name for tool in toolbox()}
        if unknown := set(names) - known:
            raise ValueError(f"no tool is called {sorted(unknown)}; possible are {', '.join(sorted(known))}")
        return names

    @field_validator("card")
    @classmethod
    def _card_can_wait(cls, card: Any) -> Any:
        if isinstance(card, dict):
            writes = {tool.name: tool for tool in toolbox() if tool.writes}
            if (name := card.get("name", "")) not in writes:
                raise ValueError(f"its name is {name!r}; possible are {', '.join(sorted(writes))}")
            fields = {"name", "patient", *writes[name].args.model_fields} - {"patient_id"}
            if unknown := set(card) - fields:
                raise ValueError(f"unknown key {sorted(unknown)}")
        return card


class Case(Block):
    """One conversation; one of a single turn may be written without `turns`. `patient`: id of the one who is open."""

    id: Text
    patient: Text | None = None
    turns: Annotated[list[Turn], Field(min_length=1)]


class CaseFile(Block):
    voice: str = ""
    cases: Annotated[list[dict[Any, Any]], Field(min_length=1)]


class _OnceOnly(yaml.SafeLoader):
    """Refuses a key that stands twice in one block: the second would replace the first without a word."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for twice in (key for position, key in enumerate(keys) if key in keys[:position]):
            raise yaml.constructor.ConstructorError(None, None, f"{twice!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def load_cases(path: Path, only: str | None = None) -> list[Case]:
    """Every case of a file, or the one with the id `only`.

    Raises:
        CaseFileError: the file cannot be read, or a case of it cannot be used.
        UsageError: there is no case `only`.
    """
    where = "the file"
    try:
        file = CaseFile.model_validate(yaml.load(path.read_text(encoding="utf-8"), _OnceOnly) or {})
        cases: list[Case] = []
        for number, item in enumerate(file.cases, 1):
            where = f"case {item.get('id', number)}"
            cases.append(_case(item))
            if cases[-1].id in {case.id for case in cases[:-1]}:
                raise ValueError("the id stands twice")
    except ValidationError as error:
        reasons = "; ".join(map(_reason, error.errors()[:3]))
        raise CaseFileError(f"{path} cannot be used: {where}: {reasons}.") from error
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a day that no calendar has
        reason = " ".join(str(error).split())[:200]
        raise CaseFileError(f"{path} cannot be used: {where}: {reason}.") from error
    if only is None:
        return cases
    if chosen := [case for case in cases if case.id == only]:
        return chosen
    raise UsageError(f"There is no case {only!r} in {path}.", hint=f"The first one is {cases[0].id}.")


def _case(item: dict[Any, Any]) -> Case:
    if "turns" not in item:
        own = {key: item[key] for key in ("id", "patient") if key in item}
        item = {**own, "turns": [{key: value for key, value in item.items() if key not in own}]}
    return Case.model_validate(item)


def _reason(problem: ErrorDetails) -> str:
    """One problem of a case: the key, with what was given where it is no text."""
    key = ".".join(str(part) for part in problem["loc"] if "[" not in str(part))
    given = problem["input"]
    shown = f" ({given!r})" if not isinstance(given, dict) else ""
    return f"{key}: {WORDS.get(problem['type'], problem['msg'])}{shown}"
