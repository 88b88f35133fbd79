"""A turn as what the browser shows: words, timeline, sources, badges, approval card. Pure; everything is escaped.

Answers, notes and sources were written by others. A chat message is Markdown, where an image link alone would make the
browser fetch an address; so a message is one block of HTML in one line, in which Markdown is not read.
"""

import base64
import io
import re
from html import escape
from pathlib import Path
from typing import Any

from docgemma.images import describe_header, load_image
from docgemma.report import approval_text

Message = dict[str, Any]
THUMBNAIL = (360, 360)  # pixels, at most
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
WEB = re.compile(r"https?://[^\s\"'<>]+", re.IGNORECASE)


def said(text: str, image: str | Path | None = None) -> Message:
    """What the clinician sent. The picture is shown small, from memory: no address serves it."""
    picture = thumbnail(image) if image else ""
    return {"role": "user", "content": block("dg-said", picture + lines(text))}


def answer(result: dict[str, Any]) -> list[Message]:
    """A finished or stopped turn: how it was answered, then the answer with its sources and choices."""
    shown = result["answer"]
    if pending := result["pending_write"]:
        waits = f"{pending['label']}: your decision is needed. Nothing has been written yet."
        shown = result["answer"].removesuffix(approval_text(pending)) + waits
    body = block("dg-answer", lines(shown) + sources(result["sources"]) + removed(result["grounding"]))
    message: Message = {"role": "assistant", "content": body}
    if result["options"]:
        message["options"] = [{"value": item["id"], "label": item["label"]} for item in result["options"]]
    return [thought(result["timeline"], result["seconds"]), message]


def thought(timeline: list[dict[str, Any]], seconds: float) -> Message:
    """The timeline of a finished turn, closed until somebody opens it."""
    total = seconds or sum(step["seconds"] for step in timeline)
    title = f"How this was answered: {len(timeline)} steps, {total:.1f}\u00a0s"
    return {"role": "assistant", "content": steps(timeline), "metadata": {"title": title, "status": "done"}}


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
    metadata = {"title": f"{now or 'Starting'} …", "status": "pending"}
    shown = [{"role": "assistant", "content": steps(_timeline(events), now), "metadata": metadata}]
    return [*shown, {"role": "assistant", "content": block("dg-answer", lines(words))}] if words.strip() else shown


def cut_off(events: list[dict[str, Any]]) -> list[Message]:
    """The steps of a turn that came to no end."""
    timeline = _timeline(events)
    return [thought(timeline, 0.0)] if timeline else []


def _timeline(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == "step"]


def steps(timeline: list[dict[str, Any]], now: str = "") -> str:
    rows = [
        f"<li><span class='dg-label'>{lines(step['label'])}</span> <span class='dg-seconds'>{step['seconds']:.2f} s"
        f"</span><span class='dg-detail'>{lines(step['detail'])}</span></li>"
        for step in timeline
    ]
    if now:
        rows.append(f"<li class='dg-now'><span class='dg-label'>{lines(now)}</span> <span>…</span></li>")
    return f"<ol class='dg-steps'>{''.join(rows)}</ol>"


def sources(items: list[dict[str, Any]]) -> str:
    """Where the facts come from: name, date, and links that lead to a web page and nowhere else."""
    if not items:
        return ""
    return f"<div class='dg-sources'><strong>Sources</strong><ul>{''.join(map(_source, items))}</ul></div>"


def removed(grounding: dict[str, Any]) -> str:
    """Sentences that the sources did not support are not shown; that they were removed is."""
    count = len(grounding["removed"])
    text = f"{count} sentence{'s' if count > 1 else ''} removed: not supported by the sources."
    return f"<div class='dg-removed'>{text}</div>" if count else ""


def notice(text: str) -> Message:
    """A line from the program itself: an error, a stop, a caption."""
    return {"role": "assistant", "content": block("dg-notice", lines(text))}


def caption(title: str, text: str) -> Message:
    return {"role": "assistant", "content": block("dg-caption", f"<strong>{lines(title)}</strong><br>{lines(text)}")}


def history(turns: list[dict[str, Any]]) -> list[Message]:
    """Earlier turns as the memory keeps them: what was said, and what had been looked up."""
    messages = []
    for turn in turns:
        messages.append(said(turn["user"]))
        if turn["tools"]:
            found = [{"label": item["label"], "detail": item["brief"]} for item in turn["tools"]]
            rows = "".join(
                f"<li><span class='dg-label'>{lines(item['label'])}</span><span class='dg-detail'>"
                f"{lines(item['detail'])}</span></li>"
                for item in found
            )
            metadata = {"title": f"What was looked up: {len(found)}", "status": "done"}
            messages.append({"role": "assistant", "content": f"<ol class='dg-steps'>{rows}</ol>", "metadata": metadata})
        messages.append({"role": "assistant", "content": block("dg-answer", lines(turn["assistant"]))})
    return messages


def card(pending: dict[str, Any]) -> str:
    """The approval card: what, for whom, and what the safety check found, the worst first as the rules order it."""
    who = pending.get("patient") or {"id": pending["args"].get("patient_id", "")}
    known = [who["name"], f"born {who['birth_date']}" if who["birth_date"] else ""] if "name" in who else ["patient"]
    patient = f"{', '.join(filter(None, known))} (ID {who['id']})"
    rows = "".join(
        f"<dt>{lines(field_label(key))}</dt><dd>{lines(str(value))}</dd>"
        for key, value in pending["args"].items()
        if key != "patient_id" and value not in (None, "")
    )
    findings = "".join(f"<li>{lines(item)}</li>" for item in pending["findings"])
    nothing = "A note has no safety check." if pending.get("name") == "save_clinical_note" else NO_CONFLICT
    checked = f"<ul class='dg-findings'>{findings}</ul>" if findings else f"<p>{nothing}</p>"
    return (
        f"<section class='dg-card' aria-labelledby='dg-card-title'><h2 id='dg-card-title' tabindex='-1'>"
        f"Approve this entry? {lines(pending['label'])}</h2><dl><dt>For</dt><dd>{lines(patient)}</dd>{rows}</dl>"
        f"<h3>Safety check</h3>{checked}</section>"
    )


def badges(
    model: str, mode: str, store: str, fell_back: bool = False, replay: str = "", user: str | None = None
) -> str:
    """The line at the top: which model, where facts come from, and that this is no medical device."""
    if replay:
        return _badge("dg-replay", f"Replay, recorded {replay}", "No model is loaded; nothing is computed now.")
    name, why = SOURCES["offline" if fell_back else mode]
    return (
        _badge(f"dg-{name.lower()}", name, why)
        + _badge("dg-model", f"Model: {model}", "The language model that is loaded.")
        + _badge("dg-store", store, "Where patient records are read and written.")
        + (_signed_in(user) if user else "")
        + _badge("dg-device", "Decision support, not a medical device", "A clinician decides.")
    )


def _signed_in(user: str) -> str:
    why = "Entries that are approved here are signed with this name."
    out = "<a href='logout?all_session=false'>Sign out</a>"  # of this browser, not of others with the same name
    return f"<span class='dg-badge' title='{why}'>Signed in: {escape(user)} · {out}</span>"


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
    rows = "".join(f"<dt>{key}</dt><dd>{lines(str(value))}</dd>" for key, value in facts.items())
    return f"<dl class='dg-facts'>{rows}</dl>{steps(result['timeline'])}{sources(result['sources'])}"


def field_label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def block(kind: str, body: str) -> str:
    return f"<div class='{kind}'>{body}</div>"


def lines(text: str) -> str:
    """Escaped, and one line whatever ends a line in it: after an empty line, Markdown would be read again."""
    return "<br>".join(escape(text.strip()).splitlines())


def thumbnail(path: str | Path) -> str:
    picture, header = load_image(path)
    picture.thumbnail(THUMBNAIL)
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=80)
    data = base64.b64encode(out.getvalue()).decode()
    return f"<img class='dg-image' alt='{escape(describe_header(header))}' src='data:image/jpeg;base64,{data}'>"


def _source(item: dict[str, Any]) -> str:
    name = item.get("source") or item.get("title") or ""
    label = f"{item['label']}: " if item.get("label") else ""
    dated = f", as of {item['as_of']}" if item.get("as_of") else ""
    links = [*item.get("links", []), *([item] if item.get("url") else [])]
    return f"<li>{lines(label + name + dated)}{''.join(map(_link, links))}</li>"


def _link(link: dict[str, str]) -> str:
    title = lines(link.get("title") or link.get("id") or link["url"])
    if not WEB.fullmatch(link.get("url", "")):
        return f"<br>{title}"
    return f"<br><a href='{escape(link['url'])}' target='_blank' rel='noopener noreferrer'>{title}</a>"


def _badge(kind: str, text: str, why: str) -> str:
    return f"<span class='dg-badge {kind}' title='{escape(why)}'>{escape(text)}</span>"
