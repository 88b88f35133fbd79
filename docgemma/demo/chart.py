"""The patient beside the talk: whom to pick from, and the chart as a clinician reads it."""

from html import escape

from docgemma.agent import Agent
from docgemma.demo import view
from docgemma.ehr.base import PatientMatch
from docgemma.ehr.open import seed_resources
from docgemma.ehr.summary import summarize
from docgemma.errors import DocGemmaError, StoreError

Choice = tuple[str, str]
EMPTY = "<p class='dg-empty'>Pick a patient, or ask about one: the chart appears here.</p>"
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
    return (
        view.html("chart", summarize(chart), view.RECENT)
        if chart
        else "<p class='dg-problem'>There is no such patient.</p>"
    )
