"""Read a CDS Hooks 2.0 request: the chart that it brings or names. Nobody is called back."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal, Optional

import yaml
from pydantic import ConfigDict, Field

from docgemma.api.models import Body
from docgemma.api.problems import Problem
from docgemma.ehr import fhir
from docgemma.ehr.base import Chart, RecordStore, Resource
from docgemma.errors import StoreError
from docgemma.rules.chart_entries import results_to_weigh
from docgemma.rules.patient_state import patient_state
from docgemma.tools.records import PATIENT_CHART, chart_data

SHAPE = (AttributeError, IndexError, KeyError, TypeError, ValueError)  # of a resource that is not FHIR R4
Hook = Literal["order-sign", "order-select", "patient-view"]


@cache
def services() -> dict[str, Any]:
    """cds.yaml."""
    read: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("cds.yaml").read_text(encoding="utf-8"))
    return read


class Lenient(Body):
    model_config = ConfigDict(extra="ignore")  # the specification lets clients add fields


class Entry(Lenient):
    fullUrl: Optional[str] = None
    resource: Optional[dict[str, Any]] = None


class Drafts(Lenient):
    resourceType: Literal["Bundle"]
    entry: list[Entry] = Field(default_factory=list, max_length=1000)


class HookContext(Lenient):
    userId: str = Field(min_length=1, max_length=256)
    patientId: str = Field(pattern=r"^[A-Za-z0-9.-]{1,64}$")
    encounterId: Optional[str] = Field(default=None, max_length=256)
    selections: Optional[list[str]] = Field(default=None, max_length=1000)
    draftOrders: Optional[Drafts] = None


class HookRequest(Lenient):
    """A call of a service. `fhirServer` and `fhirAuthorization` are not read: this server calls nobody back."""

    hook: Hook
    hookInstance: str = Field(min_length=1, max_length=256)
    context: HookContext
    prefetch: Optional[dict[str, Optional[dict[str, Any]]]] = None


class Feedback(Lenient):
    """What became of cards. It is counted; no comment, reason or name is kept."""

    feedback: list[dict[str, Any]]


@dataclass(frozen=True)
class Known:
    """A chart, and what of it is not known: `unchecked` names the check, the reason in brackets."""

    chart: Chart
    unchecked: list[str]
    origin: str


def known(given: HookRequest, store: RecordStore, needed: set[str]) -> Known:
    """The patient's chart: what the prefetch holds (null: looked up, none there), the rest from the record store.

    Raises:
        Problem: 412, what is `needed` stands in neither; 422, the prefetch is about another patient.
        StoreError: the store is out of reach, and the prefetch does not do without it.
    """
    patient_id, (sent, unchecked) = given.context.patientId, _sent(given)
    patient = next((item for item in sent.get("patient", []) if kind(item) == "Patient"), {})
    missing = [key for key in services()["prefetch"] if key not in sent]
    stored = None
    try:
        stored = store.chart(patient_id) if missing else None
    except StoreError:
        if needed & set(missing):
            raise
    if stored and patient.get("birthDate", stored.patient.birth_date) != stored.patient.birth_date:
        stored = None  # another person of the same id
    if needed & set(missing) and not stored:
        detail = "This patient is not in the records here, and the request does not bring what the service needs."
        raise Problem(412, detail, f"Send the prefetch that /cds-services names: {', '.join(sorted(needed))}.")
    record = patient or (stored.record if stored else {})
    entries = [item for items in sent.values() for item in items if kind(item) != "Patient"]
    chart = fhir.build_chart({"id": patient_id, **record}, entries, lambda *_: None)
    origin = f"sent with the request: {', '.join(sent)}" if sent else ""
    if not stored:
        lacking = [f"{services()['checks'][key]} (no {key} sent with the request)" for key in missing]
        return Known(chart, [*unchecked, *lacking], origin)
    parts = {name: getattr(stored, name) for key in missing for name in services()["parts"][key]}
    own = f"{store.name}: {', '.join(missing)}"
    return Known(replace(chart, notes=stored.notes, **parts), unchecked, "; ".join(filter(None, (origin, own))))


def _sent(given: HookRequest) -> tuple[dict[str, list[Resource]], list[str]]:
    """What the prefetch holds by its keys, and what of it cannot be relied on."""
    prefetch, unchecked, sent = given.prefetch or {}, list[str](), dict[str, list[Resource]]()
    items = {key: list(_resources(prefetch[key])) for key in services()["prefetch"] if key in prefetch}
    pool = medications(item for some in items.values() for item in some)
    drafted = {reference(entry.resource) for entry in entries_of(given) if entry.resource and entry.resource.get("id")}
    for key, some in items.items():
        found = [item for item in (named(item, pool) for item in some) if is_readable(item)]
        check_owner(found, given.context.patientId)
        if {kind(item) for item in some} == {"OperationOutcome"} or (key == "patient" and not found):
            continue  # not had
        if others := len(some) - len(found):
            unchecked.append(f"{others} of the {key} sent (not readable as FHIR R4)")
        links = (prefetch[key] or {}).get("link")
        told = [link.get("relation") for link in links if isinstance(link, dict)] if isinstance(links, list) else []
        if key != "observations" and "next" in told:
            unchecked.append(f"further {key} (the list that was sent is one page of several)")
        sent[key] = [item for item in found if reference(item) not in drafted]
    return sent, unchecked


def entries_of(given: HookRequest) -> list[Entry]:
    if given.hook == "patient-view":
        return []
    if given.context.draftOrders is None:
        raise Problem(422, "The context has no `draftOrders`.", "Send a Bundle of the drafted orders.")
    return given.context.draftOrders.entry


def _resources(value: Any) -> Iterator[Resource]:
    """Those of a Bundle, {} for an entry that holds none; a resource by itself; none of null."""
    if not isinstance(value, dict) or value.get("resourceType") != "Bundle":
        yield from [] if value is None else [value]
        return
    entries = value.get("entry", [])
    for entry in entries if isinstance(entries, list) else [entries]:
        resource = entry.get("resource") if isinstance(entry, dict) else None
        yield resource if isinstance(resource, dict) else {}


def is_readable(resource: Resource) -> bool:
    """Whether the rules can read it: it was written by others, in whatever shape."""
    try:
        patient = resource if kind(resource) == "Patient" else {"id": "x"}
        fhir.patient_id_of(resource)
        chart = chart_data(fhir.build_chart({"id": "x", **patient}, [resource], lambda kind, resource_id: None))
        patient_state(chart, date.today())
        results_to_weigh(chart)
    except SHAPE:
        return False
    return bool(kind(resource)) and _fits(chart, PATIENT_CHART.data)


def _fits(value: Any, shape: Any) -> bool:
    """Whether data are of a tool's declared shape: a list where a text is due may pass unseen through what reads it."""
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(_fits(value.get(key), inner) for key, inner in shape.items())
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(item, shape[0]) for item in value)
    return isinstance(value, shape) or (shape is not str and isinstance(value, int))


def named(order: Resource, pool: Mapping[str, Resource]) -> Resource:
    """An order that refers to its medicine, with the medicine's code in it."""
    said = order.get("medicationReference")
    target = said.get("reference") if isinstance(said, dict) else None
    if not isinstance(target, str) or order.get("medicationCodeableConcept"):
        return order
    contained = order.get("contained") if isinstance(order.get("contained"), list) else []
    inside = {f"#{item.get('id')}": item for item in contained or [] if isinstance(item, dict)}
    medicine = inside.get(target) or pool.get(target) or pool.get(fhir.local_reference(said)) or {}
    return {**order, "medicationCodeableConcept": medicine["code"]} if medicine.get("code") else order


def medications(resources: Any) -> dict[str, Resource]:
    return {reference(item): item for item in resources if kind(item) == "Medication"}


def check_owner(resources: list[Resource], patient_id: str) -> None:
    try:
        owners = {fhir.patient_id_of(item) for item in resources}
    except SHAPE as error:
        raise Problem(422, "A resource's patient cannot be read.", "Send FHIR R4 resources.") from error
    if owners - {"", patient_id}:
        raise Problem(422, "The request holds a resource of another patient.", "Send one patient's data.")


def kind(resource: Resource) -> str:
    said = resource.get("resourceType")
    return said if isinstance(said, str) else ""


def reference(resource: Resource) -> str:
    return f"{kind(resource)}/{resource.get('id')}"
