"""A turn, a card and a chart as what the browser shows. page.html is the template.

Answers, notes and sources were written by others. A chat message is Markdown, where an image link alone would make the
browser fetch an address; so a message is one block of HTML in one line, in which Markdown is not read.
"""

import base64
import io
from datetime import date
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, Template
from markupsafe import Markup

from docgemma.agent import Agent
from docgemma.ehr.summary import summarize
from docgemma.errors import DocGemmaError, StoreError
from docgemma.images import describe_header, load_image
from docgemma.nodes.write_findings import is_checked
from docgemma.report import FIRST, approval_text, source_line
from docgemma.rules.chart_entries import trend
from docgemma.rules.chart_rest import ALSO
from docgemma.rules.order_check import SEVERE
from docgemma.rules.override import RANK_WORDS, RED
from docgemma.rules.plan import NOT_SPECIFIED
from docgemma.text.words import names

AMBER = RANK_WORDS[len(RED) : -1]
MINOR = "Minor"  # of an interaction; what else ranks there is what was looked up and warns of nothing
Message = dict[str, Any]
THUMBNAIL = (360, 360)  # pixels, at most
PLOT = (72, 20)  # pixels of a trend; style.css says the same
MARGIN = 3
UNREACHABLE = "The record store cannot be reached. This is not an empty chart."


def html(part: str, *values: Any) -> str:
    """A part of the page as one line: after an empty line, Markdown would be read again."""
    return " ".join(str(getattr(_template().module, part)(*values)).split())


@cache
def _template() -> Template:
    page = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True)
    page.filters |= {"lines": _lines, "field_label": field_label, "source_line": source_line}
    page.filters |= {"by_test": _by_test, "plotted": _plotted}
    page.globals |= {"anchor": anchor, "also": ALSO}
    page.tests["web"] = _is_web
    return page.get_template("page.html")


def _lines(text: object) -> Markup:
    return Markup("<br>").join(str(text).strip().splitlines())


def _is_web(url: object) -> bool:
    return str(url).lower().startswith(("http://", "https://")) and not set(str(url)) & set(" \t\n\"'<>")


def anchor(*parts: object) -> str:
    """The id of an entry of a chart, or of a source of an answer; its words may be a patient's."""
    return f"dg-{sha256(chr(0).join(map(str, parts)).encode()).hexdigest()[:16]}"


def _by_test(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The latest result of each test, with the `earlier` ones, newest first, and its `trend`."""
    tests: dict[str, list[dict[str, Any]]] = {}
    for item in items:
        tests.setdefault(item["name"], []).append(item)
    latest = [first | {"earlier": rest} for first, *rest in tests.values()]
    return [item | {"trend": item | {"points": trend(item)}} for item in latest]


def _plotted(drawn: dict[str, Any]) -> dict[str, Any]:
    """A trend as pixels: the line, its last point, the reference range as a band, and the last change."""
    points, limits = drawn["points"], (drawn["low"], drawn["high"])
    values = [point["value"] for point in points]
    try:
        days = [date.fromisoformat(point["date"][:10]).toordinal() for point in points]
    except ValueError:  # a year alone, or what is no date
        days = []
    days = days if days and days == sorted(set(days)) else list(range(len(points)))
    seen = [*values, *(limit for limit in limits if limit is not None)]
    width, height = (size - 2 * MARGIN for size in PLOT)
    scale, span = (max(seen) - min(seen)) or 1.0, days[-1] - days[0]

    def y(value: float) -> float:
        return float(round(MARGIN + height * (max(seen) - value) / scale, 1))

    line = [(round(MARGIN + width * (day - days[0]) / span, 1), y(v)) for day, v in zip(days, values, strict=True)]
    top, bottom = (0 if limits[1] is None else y(limits[1])), (PLOT[1] if limits[0] is None else y(limits[0]))
    change = f"{round(values[-1] - values[-2], 6):+g}"
    return {
        "line": line,
        "width": PLOT[0],
        "top": top,
        "band": bottom - top if limits != (None, None) else 0,
        "change": change,
    }


def field_label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def said(text: str, image: str | Path | None = None) -> Message:
    """What the clinician sent. The picture is shown small, from memory: no address serves it. Raises UsageError."""
    if image is None:
        return {"role": "user", "content": html("said", text)}
    picture, header = load_image(image)
    picture.thumbnail(THUMBNAIL)
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=80)
    jpeg = base64.b64encode(out.getvalue()).decode()
    return {"role": "user", "content": html("said", text, jpeg, describe_header(header))}


def decided(decision: str, changes: dict[str, str], reason: str = "") -> Message:
    """What a person says who decides about an entry so."""
    if not changes:
        why = f" Reason: {reason.strip()}" if reason.strip() else ""
        return said("Rejected." if decision == "reject" else f"Approved.{why}")
    given = {name: value for name, value in changes.items() if value != NOT_SPECIFIED}
    return said("Changed: " + "; ".join(f"{field_label(name)} {value}" for name, value in given.items()))


def note(kind: str, text: str, title: str = "") -> Message:
    """A line from the program itself. `kind`: notice (an error, a stop) or caption; answer for words that come."""
    return {"role": "assistant", "content": html("note", kind, text, title)}


def answer(result: dict[str, Any]) -> list[Message]:
    """A finished or stopped turn: how it was answered, then the answer with its sources and choices."""
    shown, pending = result["answer"], result["pending_write"]
    if pending:
        shown = shown.removesuffix(approval_text(pending))  # the card shows it
    groups = [] if pending else result.get("groups", [])
    body = html(
        "answer", shown, result["sources"], len(result["grounding"]["removed"]), pending, groups, result.get("lead")
    )
    message: Message = {"role": "assistant", "content": body}
    if result["options"]:
        message["options"] = [{"value": item["id"], "label": item["label"]} for item in result["options"]]
    return [_thought(result["timeline"], result["seconds"]), message]


def working(events: list[dict[str, Any]]) -> list[Message]:
    """A turn that is being worked on: the steps so far, the one that runs, and the words that have come."""
    now = words = ""
    for event in events:
        match event["type"]:
            case "start":
                now = event["label"]
            case "step":
                now = ""
            case "token":
                words += event["text"]
            case "answer":
                words = event["text"]
    shown = [_folded(f"{now or 'Starting'} …", _timeline(events), now, "pending")]
    return [*shown, note("answer", words)] if words.strip() else shown


def cut_off(events: list[dict[str, Any]]) -> list[Message]:
    """The steps of a turn that came to no end."""
    timeline = _timeline(events)
    return [_thought(timeline, sum(step["seconds"] for step in timeline))] if timeline else []


def _timeline(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == "step"]


def _thought(timeline: list[dict[str, Any]], seconds: float) -> Message:
    """The timeline of a finished turn, closed until somebody opens it."""
    return _folded(f"How this was answered: {len(timeline)} steps, {seconds:.1f}\u00a0s", timeline)


def _folded(title: str, timeline: list[dict[str, Any]], now: str = "", status: str = "done") -> Message:
    metadata = {"title": title, "status": status}
    return {"role": "assistant", "content": html("steps", timeline, now), "metadata": metadata}


def history(turns: list[dict[str, Any]]) -> list[Message]:
    """Earlier turns as the memory keeps them: what was said, and what had been looked up."""
    messages = []
    for turn in turns:
        messages.append(said(turn["user"]))
        if turn["tools"]:
            found = [{"label": item["label"], "detail": item["brief"]} for item in turn["tools"]]
            messages.append(_folded(f"What was looked up: {len(found)}", found))
        messages.append(note("answer", turn["assistant"]))
    return messages


def card(pending: dict[str, Any], needed: bool = False) -> str:
    """The approval card: what, for whom, and what the safety check found, by how grave it is. `needed`: a reason is."""
    lines = pending.get("ranked") or [{"rank": "moderate", "text": text} for text in pending["findings"]]
    found = [item for item in lines if item["rank"] == "minor" and not item["text"].startswith(MINOR)]
    warned = [item for item in lines if item not in found]
    groups = [[item for item in warned if item["rank"] in ranks] for ranks in (RED, AMBER, RANK_WORDS[-1:])]
    return html("card", pending, is_checked(pending["args"]), FIRST, [*groups, found], needed)


class Opened(NamedTuple):
    """One patient as the page shows them: the banner, the chart, and what to call them."""

    banner: str
    chart: str
    name: str


def opened(agent: Agent, patient_id: str | None) -> Opened:
    """Banner and chart from one reading of the record; where there is none, one line on why."""
    if not patient_id:
        hint = "Find a patient, or ask about one: the chart appears here."
        return Opened(html("no_banner", ""), html("no_chart", hint, ""), "")
    try:
        found = agent.store.chart(patient_id)
        problem = "" if found else "There is no such patient."
    except DocGemmaError as error:
        found, problem = None, UNREACHABLE if isinstance(error, StoreError) else error.line()
    if not found:
        return Opened(html("no_banner", problem, patient_id), html("no_chart", "", problem), patient_id)
    summary = summarize(found)
    summary["allergies"].sort(key=lambda item: not _severe(item))
    active = [item | {"severe": _severe(item)} for item in summary["allergies"] if item["active"]]
    banner = html("banner", summary["patient"], age(summary["patient"]["birth_date"]), active,
                  summary["no_known_allergies"])  # fmt: skip
    return Opened(banner, html("chart", summary), summary["patient"]["name"])


def chart(agent: Agent, patient_id: str | None) -> str:
    """The chart as a clinician reads it, or one line on why there is none."""
    return opened(agent, patient_id).chart


def age(born: str, today: date | None = None) -> str:
    """Years, of a small child months; "" where the birth date is not known to the day."""
    today = today or date.today()
    try:
        day = date.fromisoformat(born)
    except ValueError:
        return ""
    months = 12 * (today.year - day.year) + today.month - day.month - (today.day < day.day)
    if months < 0:
        return ""
    return f"{months // 12} years" if months >= 24 else f"{months} month{'' if months == 1 else 's'}"


def _severe(allergy: dict[str, Any]) -> bool:
    return allergy["criticality"] == "high" or names(SEVERE, f"{allergy['reaction']} {allergy['severity']}")


def badges(agent: Agent, result: dict[str, Any] | None, user: str | None) -> str:
    """The line at the top. Where the snapshot had to answer in the last turn it says so."""
    mode: str = agent.settings.sources
    if mode == "auto" and any("snapshot" in (tool["source"] or "") for tool in (result or {}).get("tools", [])):
        mode = "offline"
    return html("badges", agent, mode, user)
