"""The answer as a person reads it: one conclusion, then facts under short headings, each with its source. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from docgemma.reading.terms import measure_named
from docgemma.rules.chart_entries import SECTIONS, Chart, Line, lines_of, trend
from docgemma.state import AgentState, ToolResult
from docgemma.text.words import plain


class Fact(NamedTuple):
    """One statement. `alone`: how it reads where nothing else stands under its heading, "" for heading and text.

    `cite`: number of its source, 0 for none. `entry`: the line of the chart that it rests on.
    """

    text: str
    title: str = ""
    alone: str = ""
    cite: int = 0
    entry: Line | None = None
    patient: str = ""

    @property
    def sentence(self) -> str:
        """The statement on its own."""
        return self.alone or (f"{self.title}: {self.text}" if self.title else self.text)


class Answer(NamedTuple):
    """A composed answer. `missing`: {"ask", "reason"} of each part of the request that it does not serve."""

    lead: Fact | None
    blocks: list[list[Fact]]
    missing: list[dict[str, str]]

    @property
    def plain(self) -> str:
        """Each statement on a line of its own: what prose is held to."""
        return "\n".join(fact.sentence for block in self._all for fact in block)

    @property
    def _all(self) -> list[list[Fact]]:
        return [[self.lead], *self.blocks] if self.lead else self.blocks

    @property
    def groups(self) -> list[dict[str, Any]]:
        """[{"title", "facts": [{"text", "cite", "entry", "trend"}]}], in the order of the text."""
        groups = [group for block in self._all for group in _grouped(block)]
        return [{"title": title, "facts": [_as_data(fact) for fact in facts]} for title, facts in groups]

    @property
    def text(self) -> str:
        """The answer without marks of any markup: "[2]" after a heading or a sentence is the number of its source."""
        return "\n\n".join("\n".join(_lines(block)) for block in self._all)


def number(result: ToolResult, state: AgentState) -> int:
    """The number of its source, as the report lists them; 0 where it has none."""
    listed = [item for item in state.get("tool_results") or [] if item["source"] and not item["error"]]
    return next((number for number, item in enumerate(listed, 1) if item is result), 0)


def sentences(lines: Iterable[str], cite: int = 0) -> list[Fact]:
    """Sentences as facts without a heading."""
    return [Fact(line, cite=cite) for line in lines]


def of_chart(lines: Iterable[str], item: ToolResult, cite: int) -> list[Fact]:
    """Sentences about a patient as facts: each finds the entry that it is, or else the first one that it names."""
    chart: Chart = item["result"]
    entries = {line.text: line for line in reversed(lines_of(chart, *SECTIONS))}
    nameable = lines_of(chart, "labs", "alg", "prob", "meds")
    called = (measure_named(line.name) or plain(line.name) for line in nameable)
    told = [(line, "latest " * (line.ask == "labs") + name) for line, name in zip(nameable, called, strict=True)]
    patient, facts = chart["patient"]["id"], []
    for sentence in lines:
        entry, said = entries.get(sentence), f" {plain(sentence).replace(',', ' ').replace(':', ' ')} "
        named = entry or next((line for line, name in told if name and f" {name} " in said), None)
        title, text = (entry.title, entry.short) if entry else ("", sentence)
        facts.append(Fact(text, title, sentence if entry else "", cite, named, patient))
    return facts


def _grouped(block: Sequence[Fact]) -> list[tuple[str, list[Fact]]]:
    """Facts of one heading together, where the first of them stands; a sentence without a heading is on its own."""
    groups: dict[str, list[Fact]] = {}
    for fact in block:
        groups.setdefault(fact.title or f"\n{fact.text}", []).append(fact)
    return [(facts[0].title, facts) for facts in groups.values()]


def _lines(block: Sequence[Fact]) -> list[str]:
    lines = []
    for title, facts in _grouped(block):
        marks = "".join(f" [{number}]" for number in sorted({fact.cite for fact in facts} - {0}))
        lines += [facts[0].sentence + marks] if len(facts) == 1 else []
        lines += [f"{title}{marks}:", *(f"- {fact.text}" for fact in facts)] if len(facts) > 1 else []
    return lines


def _as_data(fact: Fact) -> dict[str, Any]:
    entry = fact.entry
    found: dict[str, Any] = {"text": fact.text, "cite": fact.cite, "entry": None, "trend": None}
    if entry:  # notes of one kind are told apart by their dates
        name = f"{entry.name} {entry.item['date']}" if entry.ask == "notes" else entry.name
        found["entry"] = {"patient": fact.patient, "section": SECTIONS[entry.ask][0], "name": name}
    if entry and fact.text == entry.short and entry.ask in ("labs", "vit") and (points := trend(entry.item)):
        found["trend"] = {"points": points} | {key: entry.item.get(key) for key in ("unit", "low", "high")}
    return found


def unique(blocks: Iterable[Iterable[Fact]]) -> list[list[Fact]]:
    """The blocks without empty ones, each statement once in its block."""
    once: list[dict[str, Fact]] = []
    for block in blocks:
        once.append({})
        for fact in block:
            once[-1].setdefault(fact.sentence.casefold(), fact)
    return [list(block.values()) for block in once if block]
