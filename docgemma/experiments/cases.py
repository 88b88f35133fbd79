"""A golden set: requests with what has to come of them, read from YAML and checked key by key before anything runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from docgemma.errors import DocGemmaError, UsageError
from docgemma.tools import toolbox

STATUSES = ("answered", "needs_clarification", "needs_approval", "refused")
DECISIONS = ("approve", "reject")
NO_CARD = "none"
TEXTS, LISTS = ("ask", "expected", "status", "decide"), ("must", "must_not", "tools")
TURN_KEYS = {*TEXTS, *LISTS, "card"}


class CaseFileError(DocGemmaError):
    """The file of a golden set cannot be used; the line names the case and what is wrong."""


@dataclass(frozen=True)
class Turn:
    """One message, and what has to come of it. Texts may hold alternatives: "5.3 | 5,3"."""

    ask: str
    expected: str = ""  # one line for a person who grades
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    card: dict[str, str] | str | None = None  # a card's fields, "none" (no card may be prepared), None (not checked)
    status: str | None = None
    decide: Literal["approve", "reject"] | None = None  # what is clicked after the turn, where a card waits


@dataclass(frozen=True)
class Case:
    """One conversation, most often of one turn."""

    id: str
    turns: tuple[Turn, ...]
    patient: str | None = None  # id of the patient who is open


def alternatives(text: str) -> list[str]:
    """The texts of which one is enough."""
    return [part.strip() for part in text.split("|")]


def load_cases(path: Path, only: str | None = None) -> list[Case]:
    """Every case of a file, or the one with the id `only`.

    Raises:
        CaseFileError: the file cannot be read, or a case of it cannot be used.
        UsageError: there is no case `only`.
    """
    try:
        cases = _cases(_parsed(path))
    except CaseFileError as error:
        raise CaseFileError(f"{path} cannot be used: {error}.") from error
    if only is None:
        return cases
    if chosen := [case for case in cases if case.id == only]:
        return chosen
    raise UsageError(f"There is no case {only!r} in {path}.", hint=f"The first one is {cases[0].id}.")


class _OnceOnly(yaml.SafeLoader):
    """Refuses a key that stands twice in one block: the second would replace the first without a word."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for twice in (key for position, key in enumerate(keys) if key in keys[:position]):
            raise yaml.constructor.ConstructorError(None, None, f"{twice!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _parsed(path: Path) -> Any:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _OnceOnly)
    except OSError as error:
        raise CaseFileError(error.strerror or "it cannot be read") from error
    except UnicodeDecodeError as error:
        raise CaseFileError("it is no UTF-8 text") from error
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise CaseFileError(f"{line}no YAML ({error.problem})") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a day that no calendar has
        raise CaseFileError(f"no YAML ({' '.join(str(error).split())[:120]})") from error


def _cases(data: Any) -> list[Case]:
    if not isinstance(data, dict) or not isinstance(data.get("cases"), list) or not data["cases"]:
        raise CaseFileError("it has no list `cases`")
    _only_keys(data, {"voice", "cases"}, "the file")
    seen: set[str] = set()
    found = [_case(item, number) for number, item in enumerate(data["cases"], 1)]
    for case in found:
        if case.id in seen:
            raise CaseFileError(f"case {case.id}: the id stands twice")
        seen.add(case.id)
    return found


def _case(item: Any, number: int) -> Case:
    where = f"case {number}"
    if not isinstance(item, dict):
        raise CaseFileError(f"{where}: not a block of keys")
    where = f"case {_text(item, 'id', where, needed=True)}"
    patient, turns = _text(item, "patient", where), item.get("turns")
    if "turns" not in item:
        turn = {key: value for key, value in item.items() if key not in ("id", "patient")}
        return Case(item["id"], (_turn(turn, where),), patient)
    _only_keys(item, {"id", "patient", "turns"}, where)
    if not isinstance(turns, list) or not turns:
        raise CaseFileError(f"{where}: turns is not a list")
    return Case(item["id"], tuple(_turn(turn, f"{where}, turn {n}") for n, turn in enumerate(turns, 1)), patient)


def _turn(item: Any, where: str) -> Turn:
    if not isinstance(item, dict):
        raise CaseFileError(f"{where}: not a block of keys")
    _only_keys(item, TURN_KEYS, where)
    _text(item, "ask", where, needed=True)
    for key, allowed in (("status", STATUSES), ("decide", DECISIONS)):
        _one_of(_text(item, key, where), allowed, key, where)
    lists: dict[str, Any] = {key: _texts(item, key, where) for key in LISTS}
    for name in lists["tools"]:
        _one_of(name, [tool.name for tool in toolbox()], "tools", where)
    texts: dict[str, Any] = {key: item[key] for key in TEXTS if item.get(key)}
    return Turn(**texts, **lists, card=_card(item.get("card"), where))


def _card(card: Any, where: str) -> dict[str, str] | str | None:
    if card is None or card == NO_CARD:
        return NO_CARD if card else None
    if not isinstance(card, dict):
        raise CaseFileError(f"{where}: card is neither `none` nor a block of keys")
    where = f"{where}, card"
    name = _text(card, "name", where, needed=True) or ""
    _one_of(name, [tool.name for tool in toolbox() if tool.writes], "name", where)
    _only_keys(card, {"name", "patient", *toolbox()[name].args.model_fields} - {"patient_id"}, where)
    for key in card:
        _text(card, key, where, needed=True)
        _no_empty_one(card[key], key, where)
    return card


def _text(item: dict[str, Any], key: str, where: str, needed: bool = False) -> str | None:
    value = item.get(key)
    if value is None and not needed:
        return None
    if value is None or value == "":
        raise CaseFileError(f"{where}: {key} is missing")
    if not isinstance(value, str) or not value.strip():
        raise CaseFileError(f"{where}: {key} is no text ({value!r}); put it in quotes")
    return value


def _texts(item: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    values = item.get(key, [])
    if not isinstance(values, list):
        raise CaseFileError(f"{where}: {key} is not a list")
    for value in values:
        if not isinstance(value, str):
            raise CaseFileError(f"{where}: {key} holds {value!r}, which is no text; put it in quotes")
        _no_empty_one(value, key, where)
    return tuple(values)


def _no_empty_one(text: str, key: str, where: str) -> None:
    if not all(alternatives(text)):
        raise CaseFileError(f"{where}: {key} holds an empty text")


def _only_keys(item: dict[Any, Any], allowed: set[str], where: str) -> None:
    for key in item:
        if key not in allowed:
            raise CaseFileError(f"{where}: unknown key {key!r}; possible are {', '.join(sorted(allowed))}")


def _one_of(value: str | None, allowed: Any, key: str, where: str) -> None:
    if value is not None and value not in allowed:
        raise CaseFileError(f"{where}: {key} is {value!r}; possible are {', '.join(sorted(allowed))}")
