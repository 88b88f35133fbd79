"""What a message says beside what the chart and the card say: the value that was typed, "NKDA", a cause. Pure."""

import json
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from docgemma.reading.labels import WRITES
from docgemma.reading.terms import measure_named, measure_said, said_in
from docgemma.rules.chart_entries import lines_of, result_told
from docgemma.rules.plan import missing
from docgemma.state import AgentState, Request
from docgemma.text.births import read_births
from docgemma.text.clauses import fillers, masked
from docgemma.text.durations import duration
from docgemma.text.frequency import times_per_day
from docgemma.text.numbers import quantities
from docgemma.text.words import clinical, listed, phrases_in, plain

ALONE = frozenset([*WRITES, "find", "fix", "ok", "chat", "gk"])  # asks of a message that is an entry and nothing else
ALSO = "Also written, in no field of the entry: {}."
FOLLOWS = "After this entry follows: {}."
YOU_WROTE = "You wrote"
CHECK = "Check with the patient and the prescriber before going on."
TIMES, DOSED = ("hour", "month"), frozenset(["hour", "month", "mg"])  # units behind a number that is no such value
MOST = 3  # words of a measure's name
REACH = 8  # words between it and its value, and its own
EDGES = ",;:.!?()=~%'\"“”‘’"


def above_card(state: AgentState, request: Request, chart: Mapping[str, Any], args: Mapping[str, Any]) -> list[str]:
    """What stands above the entry that is about to wait: what is in no field, what the chart has otherwise, what
    follows."""
    first = not any(item["writes"] for item in state.get("tool_results") or [])
    left = also_written(request) if first and set(request["asks"]) <= ALONE else []
    lines = [ALSO.format("; ".join(f"“{text}”" for text in left))] if left else []
    lines += typed_lines(request, chart, date.today()) if "medication_name" in args else []
    return [*lines, *entries_behind(state, 1)]


def entries_behind(state: AgentState, shown: int = 0) -> list[str]:
    """A line of the entries that follow, behind so many that are on the screen."""
    later = [step.args for step in missing(state) if step.ask in WRITES][shown:]
    told = [str(item[name]) for item in later for name in ("note_text", "substance", "medication_name") if name in item]
    return [FOLLOWS.format("; ".join(told))] if told else []


def also_written(request: Request) -> list[str]:
    """Parts of a message that stand in no field of its entries and name nobody, word for word."""
    message = request["said"]
    parts = [request["orders"], request["allergies"], request["notes"], request["patients"], request["unclear"]]
    held = {""} | set(plain(json.dumps([*parts, request["details"]], ensure_ascii=False)).split())
    for birth in read_births(message):
        held |= set(plain(message[birth.start : birth.end]).split())
    empty = fillers() | listed("request_words", "linking") | listed("request_words", "entry_words")
    words = (
        "\n" if {part.strip("'").removesuffix("'s") for part in plain(word).split()} <= held else word
        for word in message.split()
    )
    runs = [run.strip(" -–()'\"" + EDGES) for run in " ".join(words).split("\n")]
    return [run for run in runs if set(plain(run).split()) - empty - {"+", "&"}]


def typed_lines(request: Request, chart: Mapping[str, Any], today: date) -> list[str]:
    """A line for each thing that was typed and that the chart has otherwise."""
    lines = []
    results = lines_of(dict(chart), "labs", "vit")
    ids = {patient["id"] for patient in request["patients"]}
    said = request["said"]
    for drug in [*request["drugs"], *request["orders"]]:
        if f"{plain(drug['said'])} level" not in clinical("units")["told"]:
            said = said.replace(drug["said"], "|")  # "slow k 600" is no potassium, "crcl? verapamil 80" no clearance
    for name, typed in typed_values(said):
        if typed in ids:  # "pt 555" is no prothrombin time
            continue
        latest = next((line for line in results if measure_named(line.name) == name), None)
        noted = _noted(chart, name) if latest is None else []
        if latest is None and typed not in {value for value, _ in noted}:
            held = f"has no result of it, a note has {noted[0][0]} ({noted[0][1]})" if noted else "has none"
            lines.append(f"{YOU_WROTE} {name} {typed}; the chart {held}.")
        elif latest and str(latest.item["value"]) != typed:
            value, unit = as_compared(name, typed) if "/" not in typed else (0.0, "")
            same = value and value != float(typed) and plain(unit) == plain(latest.item["unit"])
            typed += f" ({value:g} {unit})" if same else ""
            lines.append(f"{YOU_WROTE} {name} {typed}; the chart's latest is {result_told(latest, today)}.")
    return [*lines, *no_allergies_line(request, chart)]


def denies_allergies(request: Request) -> str:
    """The words by which an order says that no allergy is known, "nkda"; "" where none are said, or asked for."""
    phrases = [(phrase, phrase) for phrase in sorted(listed("request_words", "no_allergies"), key=len, reverse=True)]
    said, _ = phrases_in(plain(request["said"]), phrases)
    return said[0] if said and "alg" not in request["asks"] else ""


def no_allergies_line(request: Request, chart: Mapping[str, Any]) -> list[str]:
    """ "NKDA" of somebody whose chart has allergies."""
    known = [item.short.rstrip(".") for item in lines_of(dict(chart), "alg") if item.item["active"]]
    if not (said := denies_allergies(request)) or not known:
        return []
    return [f"{YOU_WROTE} {said if ' ' in said else said.upper()}; the chart has: {'; '.join(known)}."]


def _noted(chart: Mapping[str, Any], name: str) -> list[tuple[str, str]]:
    """Each number of a measure that a note has, with the type and day of the note."""
    notes = ((note["text"].strip("“”"), f"{note['type']}, {note['date'][:10]}") for note in chart["notes"])
    return [(value, said) for text, said in notes for found, value in typed_values(text) if found == name]


def typed_values(said: str) -> Iterator[tuple[str, str]]:
    """Each measure with the number that stands behind it: "K 6.8", "k6.8", "potassium is 6.8"; (measure, number). No
    birth, no year of a measure that is no thousands, no time, "6 months ago"."""
    births = [(birth, said[birth.start : birth.end]) for birth in read_births(said)]
    years = {text for birth, text in births if birth.kind == "year"}
    dates = [birth for birth, text in births if text not in years and (" " not in text or any(map(str.isalpha, text)))]
    said = masked(said, [(birth.start, birth.end) for birth in dates])  # "4.2, 88" is none
    for mark in sorted(listed("sig", "arrows") | {">"}, key=len, reverse=True):
        said = said.replace(mark, " > ")
    closed = {word.strip(EDGES) for word in said.split() if word[-1] in ":;?!"}
    words = _latest([part for word in said.split() for part in _parted(word.strip(EDGES)) if part])
    for at, word in enumerate(words):
        before = [plain(item) for item in words[max(at - REACH, 0) : at]]
        while before and before[-1] in listed("request_words", "amounting", "lately"):  # "egfr at the gp's 28"
            before.pop()
        word_before = "".join(words[max(at - 1, 0) : at])
        far = plain(word_before) not in before[-1:]
        ends = (" ".join(before[-size:]) for size in range(min(MOST, len(before)), 0, -1))
        unit, following = "".join(words[at + 1 : at + 2]).casefold(), "".join(words[at + 2 : at + 3])
        dosed = _dosed(unit)
        ended = dosed or word in closed  # "28/40: vit D?"
        behind = (plain(" ".join(words[at + 1 : at + 1 + size])) for size in (() if ended else (3, 2)))  # "90 on RA"
        last = "".join(before[-1:])
        others = (
            len(word) == 1 and word_before.casefold() in listed("request_words", "numbering"),  # "her last 3"
            {*before[-2:-1]} & listed("request_words", "no_measure"),  # "slow k 2 tds"
            unit in clinical("units")["person"]["weight"] and measure_said(last) != "weight",  # "leilani k, 104 kg"
            far and dosed - {*TIMES} and "/" not in unit,  # "egfr today, 500 mg bd"
            last in listed("measures", "released") and (dosed or times_per_day(unit)),  # "paroxetine cr 25 od"
        )
        value = _is_value(word) and not any(others)
        a_level = value and not dosed and "/" not in word and not times_per_day(unit)  # "lithium 1.6"
        level = [f"{last} level"] if a_level and unit_by_size(f"{last} level", word) is not None else []
        timed = dosed & {*TIMES} or duration(f"{word} {unit}") or unit in clinical("units")["person"]["age"]
        named = (found for end in [*ends, *level, *behind] if (found := measure_said(end)))
        if value and (name := next(named, "")):
            timed = timed and not _is_value(following) and name not in listed("measures", "in_time")  # "K 5 HR 90"
            if not timed and (word not in years or name in listed("measures", "in_thousands")):
                yield name, word


def _parted(word: str) -> list[str]:
    """A measure and the number that is written to it: "k6.8"; "phq9", "o2" and "PCV20" have no value."""
    letters = word.rstrip("0123456789.")
    whole = not measure_said(plain(letters)) or measure_said(plain(word)) or said_in(word, "immunizations")
    return [word] if whole else [letters, word[len(letters) :]]


def _dosed(unit: str) -> set[str]:
    """The unit of a dose or a time, "10 mg", "1 hr"; "mg/dl" is none."""
    return set() if "/" in unit else {item.unit for item in quantities(f"1 {unit}")} & DOSED


def _latest(words: list[str]) -> list[str]:
    """The words without a value that another took the place of: "38 > 242", "from 3.1 up to 5.4", "134 now 121"."""
    kept: list[str] = []
    for word, unit in zip(words, [*words[1:], ""], strict=False):
        at = len(kept)
        while at and kept[at - 1].casefold() in listed("request_words", "becoming"):
            at -= 1
        changed = _is_value(word) and at < len(kept) and not _dosed(unit)
        at -= "/" in "".join(kept[at - 1 : at]) and not _is_value(kept[at - 1])  # "14.6 g/dL > 9.1"
        kept = kept[: at - 1] if changed and at > 0 and _is_value(kept[at - 1]) else kept
        kept.append(word)
    return kept


def unit_by_size(name: str, value: str) -> str | None:
    """The unit in which a measure can have this number; None where none is known."""
    sizes = clinical("units")["told"].get(name, [])
    return next((unit for unit, least, most in sizes if least <= float(value) <= most), None)


def as_compared(name: str, value: str, unit: str = "") -> tuple[float, str]:
    """A result in the unit of the rules, without a unit by its size: glucose 8.5 mmol/L is 153 mg/dL, and not low."""
    unit = unit or unit_by_size(name, value) or ""
    rows = (row for row in clinical("units")["converted"] if row["measure"] == name)
    row = next((row for row in rows if plain(row["to"]).replace("μ", "u") == plain(unit).replace("μ", "u")), None)
    return (round(float(value) / row["by"], 2), row["from"]) if row else (float(value), unit)


def _is_value(word: str) -> bool:
    """A number, or two as of a blood pressure."""
    return all(part.replace(".", "", 1).isdecimal() for part in word.split("/")) and word.count("/") < 2
