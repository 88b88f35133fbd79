"""Find what two entries of a chart cannot both say, left and right, stable and worse, and a new symptom. Pure."""

from collections.abc import Collection
from datetime import date

from docgemma.rules.alarms import NOW, URGENT
from docgemma.rules.chart_entries import Chart, Line, days_since, lines_of
from docgemma.rules.grounding import split
from docgemma.rules.typed import CHECK
from docgemma.text.words import affirmed, clinical, names

CONTRADICTS = "The record contradicts itself: "


def contradictions(chart: Chart, shown: Collection[str]) -> list[str]:
    """A line for each new symptom of a note, and for each contradiction, where one of its entries is shown."""
    entries = [line for line in lines_of(chart, "notes", "prob") if line.item.get("active", True)]
    texts = [(line, split(line.item.get("text", line.name).strip("“”"))) for line in entries]
    said = [(line, affirmed(text)) for line, parts in texts for text, _ in parts]
    known, lines = clinical("contradictions"), []
    for line, text in said:
        if _days(line) <= known["new"]["days"] and all(names(known["new"][key], text) for key in ("said", "symptoms")):
            lines += [f"{URGENT}new in the note. {line.text} {NOW}"] if line.text in shown else []
    for rule in known["opposites"]:
        sides = [(line, text, names(rule["one"], text)) for line, text in said]
        sides = [(line, text, one) for line, text, one in sides if names(rule["other"], text) != one]
        for line, text, one in sides:
            subjects = [words for words in known["subjects"] if names(words, text)]
            near = [item for item in sides if item[0] is not line and any(names(words, item[1]) for words in subjects)]
            near = [item for item in near if -rule["later"] <= _days(item[0], line) - _days(line) <= rule["earlier"]]
            leads = names(rule["types"], line.name) and one in rule["leads"]
            pair = dict.fromkeys([line.text, *(other.text for other, _, _ in near)])
            if near and leads and all(other != one for _, _, other in near) and {*pair} & {*shown}:
                lines.append(f"{CONTRADICTS}{' '.join(pair)} {CHECK}")
    return lines


def _days(line: Line, beside: Line | None = None) -> int:
    """Days since a note; an active problem is of the time of what it stands beside."""
    day = line.item.get("date") or (beside.item.get("date") if beside else "") or ""
    return days_since(day[:10], date.today())
