"""A chart as a document whose pages are its entries, and its entries as claims that quote them word for word."""

import hashlib
from collections.abc import Collection, Iterable
from typing import NamedTuple

from docgemma.ehr import facts
from docgemma.ehr.base import Chart, Resource
from docgemma.rcm.records import Claim, Document, Kind, Page, Section


class Entry(NamedTuple):
    """One entry of a chart: its heading, its words, and the resource that they are of."""

    kind: Kind
    section: str
    text: str
    source: str  # "MedicationRequest/123"


def chart_document(chart: Chart) -> Document:
    """The chart as a document; page n is its n-th entry."""
    name = f"Chart of {chart.patient.name} ({chart.patient.id})"
    return as_document(name, ((entry.section, entry.text) for entry in entries(chart)))


def as_document(name: str, texts: Iterable[tuple[str, str]]) -> Document:
    """Texts as a document with a page each, under their titles."""
    pages = [
        Page(number=at, text=text, sections=[Section(title=title, start=0, end=len(text))], failed="")
        for at, (title, text) in enumerate(texts, 1)
    ]
    digest = hashlib.sha256("\n".join(page["text"] for page in pages).encode()).hexdigest()
    return Document(name=name, digest=digest, pages=pages)


def claims_of(document: Document, kind: Kind) -> list[Claim]:
    """Each page of such a document as a claim in its own words; not yet verified."""
    return [
        Claim(claim=page["text"], quote=page["text"], document=document["name"], page=page["number"],
              section=page["sections"][0]["title"], verified=False, kind=kind)
        for page in document["pages"]
    ]  # fmt: skip


def chart_claims(chart: Chart, kinds: Collection[Kind]) -> list[Claim]:
    """The entries of these kinds, each as a claim that names the resource it is of."""
    pairs = zip(entries(chart), claims_of(chart_document(chart), "note"), strict=True)
    return [{**claim, "kind": entry.kind, "source": entry.source} for entry, claim in pairs if entry.kind in kinds]


def entries(chart: Chart) -> list[Entry]:
    """Every entry of a chart, allergies first. An entry that is marked as wrong is none."""
    return [
        *(Entry("allergy", "Allergies", text, _id(item)) for item in chart.allergies if (text := _allergy(item))),
        *(Entry("medication", "Medications", _medication(item), _id(item)) for item in chart.medications),
        *(Entry("problem", "Problems", _problem(item), _id(item)) for item in chart.conditions),
        *(Entry("result", "Laboratory", _result(item), _id(item)) for item in chart.labs),
        *(Entry("result", "Vital signs", _result(item), _id(item)) for item in chart.vitals),
        *(Entry("result", "Other observations", _result(item), _id(item)) for item in chart.observations),
        *(Entry("note", "Notes", _note(item), _id(item)) for item in chart.notes),
    ]


def _allergy(item: Resource) -> str:
    if facts.says_no_known_allergy(item):
        return "No known allergies (recorded as such)."
    found = facts.allergy(item)
    if found is None:
        return ""
    word = "Allergy" if found["active"] else "Past allergy"
    return f"{word}: {found['substance']}{_detail(found['reaction'], found['severity'])}."


def _medication(item: Resource) -> str:
    found = facts.medication(item)
    since = f"since {found['started']}" if found["started"] else ""
    reason = f"for {found['reason']}" if found["reason"] else ""
    detail = _detail(found["status"] or "status not recorded", since, reason)
    return f"{found['name']} {found['dosage']}".strip() + detail + "."


def _problem(item: Resource) -> str:
    found = facts.condition(item)
    since = f"since {found['onset']}" if found["onset"] else ""
    return f"{found['name']}{_detail('active' if found['active'] else 'past', since)}."


def _result(item: Resource) -> str:
    found = facts.observation(item)
    return f"{found['name']} {found['value']} {found['unit']}".strip() + f"{_detail(found['flag'], found['date'])}."


def _note(item: Resource) -> str:
    found = facts.document(item)
    return f"{found['type'] or 'Note'}{_detail(found['date'], found['author'])}: {found['text']}"


def _detail(*parts: str) -> str:
    told = ", ".join(filter(None, parts))
    return f" ({told})" if told else ""


def _id(item: Resource) -> str:
    return f"{item.get('resourceType', '')}/{item.get('id', '')}"
