"""The patient beside the talk: whom to pick from, and the chart as a clinician reads it. Texts are escaped."""

from html import escape
from typing import Any

from docgemma.agent import Agent
from docgemma.demo.view import lines
from docgemma.ehr.base import PatientMatch
from docgemma.ehr.open import seed_resources
from docgemma.ehr.summary import summarize
from docgemma.errors import DocGemmaError, StoreError

Choice = tuple[str, str]
EMPTY = "<p class='dg-empty'>Pick a patient, or ask about one: the chart appears here.</p>"
RECENT = 12  # results shown of each kind, newest first
FOUND = 20


def listed(agent: Agent) -> list[Choice]:
    """The synthetic patients, where the record store is the one they were seeded into; else nobody: search by name."""
    if agent.settings.ehr:
        return []
    known = [item["id"] for item in seed_resources() if item["resourceType"] == "Patient"]
    found = [match for patient_id in known if (match := agent.store.patient(patient_id))]
    return [choice(match) for match in sorted(found, key=lambda match: match.name)]


def search(agent: Agent, text: str) -> list[Choice]:
    """Patients of that name or id. Raises StoreError: an outage is not "nobody"."""
    return [choice(match) for match in agent.store.search_patients(text, limit=FOUND)] if text.strip() else []


def choice(match: PatientMatch) -> Choice:
    return (f"{match.label} ({match.id})" if len(match.id) < 12 else match.label, match.id)


def chart_html(agent: Agent, patient_id: str | None) -> str:
    """The chart, or one line on why there is none."""
    if not patient_id:
        return EMPTY
    try:
        chart = agent.store.chart(patient_id)
    except StoreError:
        return "<p class='dg-problem' role='alert'>The record store cannot be reached. This is not an empty chart.</p>"
    except DocGemmaError as error:
        return f"<p class='dg-problem' role='alert'>{escape(error.line())}</p>"
    return render(summarize(chart)) if chart else "<p class='dg-problem'>There is no such patient.</p>"


def render(chart: dict[str, Any]) -> str:
    """`summarize`'s JSON as HTML. What was looked up and is not there says "none recorded"."""
    patient = chart["patient"]
    born = f"born {patient['birth_date']}" if patient["birth_date"] else "date of birth not recorded"
    dead = f", deceased {patient['deceased']}" if patient["deceased"] else ""
    who = f"{patient['sex']}, {born}{dead} · ID {patient['id']}"
    head = f"<h2>{escape(patient['name'])}</h2><p>{escape(who)}</p>"
    active = [item for item in chart["medications"] if item["active"]]
    past = [item for item in chart["medications"] if not item["active"]]
    parts = [
        _section("Allergies", [_allergy(item) for item in chart["allergies"]], _no_allergy(chart), "dg-allergies"),
        _section("Medications", [_since(item, "name", "dosage", date="started") for item in active]),
        _section("Problems", [_problem(item) for item in chart["problems"]]),
        _table("Laboratory", chart["labs"]),
        _table("Vital signs", chart["vitals"]),
        _section("Other observations", [_words(item, "name", "value", "date") for item in chart["observations"]]),
        _section("Notes", [_note(item) for item in chart["notes"]]),
        _section("Immunizations", [_words(item, "name", "date") for item in chart["immunizations"]]),
        _section("Past medications", [_words(item, "name", "dosage", "status") for item in past]) if past else "",
    ]
    return f"<article class='dg-chart'>{head}{''.join(parts)}</article>"


def _section(title: str, items: list[str], none: str = "None recorded.", kind: str = "") -> str:
    body = f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else f"<p class='dg-none'>{none}</p>"
    return f"<section class='{kind}'><h3>{title}</h3>{body}</section>"


def _table(title: str, items: list[dict[str, Any]]) -> str:
    if not items:
        return _section(title, [])
    rows = "".join(
        f"<tr><th scope='row'>{escape(item['name'])}</th><td>{escape(item['value'])} {escape(item['unit'])}</td>"
        f"<td>{_flag(item['flag'])}</td><td>{escape(item['date'])}</td></tr>"
        for item in items[:RECENT]
    )
    more = f"<p class='dg-none'>{len(items) - RECENT} older results.</p>" if len(items) > RECENT else ""
    return f"<section><h3>{title}</h3><table>{rows}</table>{more}</section>"


def _flag(flag: str) -> str:
    """In words, never by colour alone; nothing where nobody said that it is normal."""
    if not flag or flag == "normal":
        return escape(flag)
    return f"<strong class='dg-flag'>{escape(flag)}</strong>"


def _no_allergy(chart: dict[str, Any]) -> str:
    if chart["no_known_allergies"]:
        return "No known allergies (recorded as such)."
    return "None recorded. That is not the same as no known allergies."


def _allergy(item: dict[str, Any]) -> str:
    detail = ", ".join(filter(None, [item["reaction"], item["severity"], "" if item["active"] else "inactive"]))
    return f"<strong>{escape(item['substance'])}</strong>" + (f": {escape(detail)}" if detail else "")


def _problem(item: dict[str, Any]) -> str:
    ended = f", resolved {item['resolved']}" if item.get("resolved") else "" if item["active"] else ", inactive"
    return _since(item, "name", date="onset") + escape(ended)


def _note(item: dict[str, Any]) -> str:
    head = _words(item, "type", "date")
    return f"<details><summary>{head}</summary><p>{lines(item['text'])}</p></details>"


def _since(item: dict[str, Any], *keys: str, date: str) -> str:
    return _words(item, *keys) + (f", since {escape(item[date])}" if item[date] else "")


def _words(item: dict[str, Any], *keys: str) -> str:
    return escape(", ".join(str(item[key]) for key in keys if item.get(key)))
