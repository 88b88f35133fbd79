"""What the label data hold of one topic that was asked about, what answers it best first. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from docgemma.rules.dose_answer import LIMITS, WHOM, told_row, unlike
from docgemma.rules.dose_rows import Order, route_of
from docgemma.rules.layout import Fact
from docgemma.rules.order_check import RANKS
from docgemma.rules.patient_state import UNKNOWN
from docgemma.text.words import SHORT, names, plain

Row = Mapping[str, Any]
Topic = Mapping[str, Any]  # of data/clinical/label_topics.yaml
BOUNDS = ("egfr_below", "age_from", "age_below")
NARROW = {"for", "form", "egfr_below"}
SECTIONS = ("boxed warning", "contraindications", "warnings")


class Held(NamedTuple):
    """A line as it is told, the words by which it is found, whether it is for those whom the topic is about."""

    text: str
    words: str
    about: bool = False


def held_of(topic: Topic, topics: Sequence[Topic], facts: Sequence[Fact], data: Row, said: str) -> list[str]:
    """What conditions and doses say of a topic: "eGFR below 30: ineffective and toxic (Contraindications)"; of how and
    when a drug is used (`timed`) lines of the label (`facts`) too. What fits most of what is asked first, then the
    gravest."""
    route, timed = route_of(said), topic.get("timed")
    about = {topic["name"], *topic.get("rows", [])}
    ruled = _conditions(topic, about, data, route)
    lines = [Held(label_line(fact), fact.text) for fact in facts if fact.title]
    held = [item for item in [*ruled, *lines] if item.about or (timed and names(topic["match"], item.words))]
    limits = [row for row in data.get("dose_rows", []) if about & set(row) or names(topic["match"], row.get("for", ""))]
    told_limits = limits_of(limits, about, route, said) if not timed or topic.get("limits") else []
    held += [Held(text, "", True) for text in told_limits]
    words, others = _asked_words(topics, plain(said)), [other["match"] for other in topics if other != topic]
    near = {item: sum(names([word], item.words) for word in words) for item in held}
    fit = {item: near[item] / 2 + sum(names(match, item.words) for match in others) for item in held}
    held.sort(key=lambda item: (not item.about, -fit[item], timed and not any(map(str.isdigit, item.text))))
    told = list(dict.fromkeys(item.text for item in held))
    if not topic.get("usual") or not told or set(told) - {item.text for item in ruled}:
        return told
    none = "no usual one is stored."  # what is held is for some patients only
    return [*told, none] if near[held[0]] else [none, *told]


def _conditions(topic: Topic, about: set[str], data: Row, route: str) -> list[Held]:
    """The rows of conditions, of this route if one is said, the gravest first."""
    rows = [row for row in data.get("condition_rows", []) if not route or row["when"].get("route", route) == route]
    rows.sort(key=lambda row: (RANKS[row["rank"]], -row["when"].get("egfr_below", 0)))
    of_drug = topic.get("of_drug")  # what is said of the drug itself; "alcohol withdrawal" is a patient's
    told = ((row, " ; ".join([row["says"], *([] if of_drug else _words(row))])) for row in rows)
    return [Held(_told(row), words, _is_about(row, topic, about)) for row, words in told]


def limits_of(rows: Sequence[Row], about: set[str], route: str, said: str) -> list[str]:
    """Maximum doses in words, of the route that is said: those for the indication that is said first, then those for
    everybody, one line for indications of one limit; of children only where they are what is asked about."""
    held, order = [row for row in rows if LIMITS & set(row)], Order("", "", "", said, None, None, UNKNOWN)
    held = [row for row in held if row.get("route") == route] or held
    held = [row for row in held if "age_below" not in row or {"age_below", "children"} & about] or held
    held.sort(key=lambda row: len(NARROW & set(row)) if not order.is_for(row.get("for", "")) else 0)
    return unlike(f"{told_row(row, row.get('route', ''), UNKNOWN)}." for row in held)


def _asked_words(topics: Sequence[Topic], asked: str) -> set[str]:
    """The words of a question but those by which it asks how or when a drug is used."""
    phrases = {phrase for topic in topics if topic.get("timed") for phrase in topic["said"]}
    told = " ".join(phrase for phrase in phrases if f" {phrase} " in f" {asked} ").split()
    short = {phrase for topic in topics for phrase in topic["said"]}  # "jaw"
    return {word for word in asked.split() if (len(word) >= SHORT or word in short) and word not in told}


def label_line(fact: Fact) -> str:
    """A line of the label with its section: "half-life of weeks to months (warnings)"."""
    return f"{fact.text.rstrip('.')}{next((f' ({name})' for name in SECTIONS if name in fact.title), '')}."


def _words(row: Row) -> list[str]:
    return list(row["when"].get("chart_words", []))


def _is_about(row: Row, topic: Topic, about: set[str]) -> bool:
    """Whether a row is for patients of whom a topic speaks."""
    words = _words(row)
    said = set(topic["said"]) & set(words) if topic.get("timed") else names(topic["match"], " ; ".join(words))
    return bool(said or about & {*row["when"], row["when"].get("problem")})


def _told(row: Row) -> str:
    """A row, with whom it is for where its words do not say it: "eGFR below 30: start low (Warnings)"."""
    when, says = row["when"], row["says"]
    named = [when["problem"]] if "problem" in when else _words(row)[:1]
    words = [word[:5] for name in [*named, *_words(row)] for word in plain(name).split() if len(word) >= SHORT]
    bounds = [] if any(f" {word}" in f" {plain(says)}" for word in words) else named
    bounds += [WHOM[key].format(when[key]) for key in BOUNDS if str(when.get(key, says)) not in says]
    bounds = [f"{when['route']} form", *bounds] if "route" in when else bounds
    return "".join([*(f"{bound}: " for bound in bounds), f"{says} ({row['section']})."])
