"""A turn as what the browser shows: words, timeline, sources, badges, approval card, chart. page.html is the template.

Answers, notes and sources were written by others. A chat message is Markdown, where an image link alone would make the
browser fetch an address; so a message is one block of HTML in one line, in which Markdown is not read.
"""

import base64
import io
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, Template
from markupsafe import Markup

from docgemma.images import describe_header, load_image
from docgemma.report import FIRST, approval_text, source_line

Message = dict[str, Any]
THUMBNAIL = (360, 360)  # pixels, at most
RECENT = 12  # results of a chart shown of each kind, newest first
STATUS = {
    "answered": "Answered",
    "needs_clarification": "Waiting for your answer",
    "needs_approval": "Waiting for your approval",
    "refused": "Not carried out",
}
SOURCES = {
    "offline": ("Offline", "Facts come from the snapshot on this machine; nothing leaves it."),
    "auto": ("Online", "Live sources, and the snapshot on this machine where they cannot be reached."),
    "live": ("Online", "Live sources only."),
}
NO_CONFLICT = "No conflict was found in the record and the drug data."


def html(part: str, *values: Any) -> str:
    """A part of the page as one line: after an empty line, Markdown would be read again."""
    return " ".join(str(getattr(_template().module, part)(*values)).split())


@cache
def _template() -> Template:
    page = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True)
    page.filters |= {"lines": _lines, "words": _words, "field_label": field_label, "source_line": source_line}
    page.tests["web"] = _is_web
    return page.get_template("page.html")


def _lines(text: object) -> Markup:
    return Markup("<br>").join(str(text).strip().splitlines())


def _words(item: dict[str, Any], *keys: str) -> str:
    return ", ".join(str(item[key]) for key in keys if item.get(key))


def _is_web(url: object) -> bool:
    return str(url).lower().startswith(("http://", "https://")) and not set(str(url)) & set(" \t\n\"'<>")


def field_label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def said(text: str, image: str | Path | None = None) -> Message:
    """What the clinician sent. The picture is shown small, from memory: no address serves it."""
    return {"role": "user", "content": html("said", text, *_thumbnail(image))}


def _thumbnail(path: str | Path | None) -> tuple[str, str]:
    """JPEG in base64, and a description."""
    if path is None:
        return "", ""
    picture, header = load_image(path)
    picture.thumbnail(THUMBNAIL)
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=80)
    return base64.b64encode(out.getvalue()).decode(), describe_header(header)


def answer(result: dict[str, Any]) -> list[Message]:
    """A finished or stopped turn: how it was answered, then the answer with its sources and choices."""
    shown = result["answer"]
    if pending := result["pending_write"]:
        waits = f"{pending['label']}: your decision is needed. Nothing has been written yet."
        shown = shown.removesuffix(approval_text(pending)) + waits
    body = html("answer", shown, result["sources"], len(result["grounding"]["removed"]))
    message: Message = {"role": "assistant", "content": body}
    if result["options"]:
        message["options"] = [{"value": item["id"], "label": item["label"]} for item in result["options"]]
    return [_thought(result["timeline"], result["seconds"]), message]


def _thought(timeline: list[dict[str, Any]], seconds: float = 0.0) -> Message:
    """The timeline of a finished turn, closed until somebody opens it."""
    total = seconds or sum(step["seconds"] for step in timeline)
    return _folded(f"How this was answered: {len(timeline)} steps, {total:.1f}\u00a0s", timeline)


def _folded(title: str, timeline: list[dict[str, Any]], now: str = "", status: str = "done") -> Message:
    metadata = {"title": title, "status": status}
    return {"role": "assistant", "content": html("steps", timeline, now), "metadata": metadata}


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
    return [_thought(timeline)] if (timeline := _timeline(events)) else []


def _timeline(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == "step"]


def note(kind: str, text: str, title: str = "") -> Message:
    """A line from the program itself. `kind`: notice (an error, a stop) or caption; answer for words that come."""
    return {"role": "assistant", "content": html("note", kind, text, title)}


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


def card(pending: dict[str, Any]) -> str:
    """The approval card: what, for whom, and what the safety check found, the worst first as the rules order it."""
    who = {"name": "patient", "birth_date": ""} | (pending.get("patient") or {"id": pending["args"].get("patient_id")})
    born = f", born {who['birth_date']}" if who["birth_date"] else ""
    nothing = "A note has no safety check." if pending.get("name") == "save_clinical_note" else NO_CONFLICT
    return html("card", pending, f"{who['name']}{born} (ID {who['id']})", nothing, FIRST)


def badges(
    model: str, mode: str, store: str, fell_back: bool = False, replay: str = "", user: str | None = None
) -> str:
    """The line at the top: which model, where facts come from, and that this is no medical device."""
    if replay:
        shown = [("replay", f"Replay, recorded {replay}", "No model is loaded; nothing is computed now.")]
        return html("badges", shown, user)
    name, why = SOURCES["offline" if fell_back else mode]
    shown = [
        (name.lower(), name, why),
        ("model", f"Model: {model}", "The language model that is loaded."),
        ("store", store, "Where patient records are read and written."),
        ("device", "Decision support, not a medical device", "A clinician decides."),
    ]
    return html("badges", shown, user)


def trace(result: dict[str, Any] | None) -> str:
    """The last turn in full, for whoever wants to check it."""
    if not result:
        return "<p class='dg-empty'>The reasoning of the last turn appears here.</p>"
    facts = {
        "Status": STATUS[result["status"]],
        "Model": result["model"],
        "Model calls": result["llm_calls"],
        "Tokens": f"{result['tokens']['prompt']} read, {result['tokens']['completion']} written",
        "Unsupported sentences removed": len(result["grounding"]["removed"]),
    }
    return html("trace", facts, result)
