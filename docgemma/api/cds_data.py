"""Read a CDS Hooks 2.0 request: whose chart it brings or names, which medicines it drafts. Nobody is called back."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, Optional

from pydantic import ConfigDict, Field

from docgemma.api.body import Body
from docgemma.api.problems import Problem
from docgemma.ehr import facts, fhir
from docgemma.ehr.base import Chart, RecordStore, Resource
from docgemma.errors import StoreError
from docgemma.rules.chart_entries import results_to_weigh
from docgemma.rules.patient_state import patient_state
from docgemma.text.numbers import quantities
from docgemma.tools.records import PATIENT_CHART, chart_data
from docgemma.tools.untrusted import clean_text

ORDERS = 50  # medicines in one request
NAME_CHARS = 200
PIECES = ("tablet", "capsule", "puff", "")
HOURS = {"h": 1, "d": 24, "wk": 168}
SHAPE = (AttributeError, IndexError, KeyError, TypeError, ValueError)  # of a resource that is not FHIR R4
TEMPLATES = {
    "patient": "Patient/{{context.patientId}}",
    "medications": "MedicationRequest?patient={{context.patientId}}&status=active,on-hold,unknown"
    "&_include=MedicationRequest:medication",
    "allergies": "AllergyIntolerance?patient={{context.patientId}}",
    "conditions": "Condition?patient={{context.patientId}}",
    "observations": "Observation?patient={{context.patientId}}&category=laboratory,vital-signs&_sort=-date&_count=200",
}
CHECKS = {
    "patient": "age and sex", "medications": "interactions and duplicates", "allergies": "allergies",
    "conditions": "problems", "observations": "kidney function, weight and results",
}  # fmt: skip
PARTS = {key: (key,) for key in ("medications", "allergies", "conditions")} | {
    "observations": ("labs", "vitals", "observations")
}


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

    hook: Literal["order-sign", "order-select", "patient-view"]
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


@dataclass(frozen=True)
class Draft:
    """A drafted medicine; `doses`: (one dose, how often, the instruction's words), [] where the order says none."""

    reference: str
    name: str
    doses: list[tuple[str, str, str]]


def known(given: HookRequest, store: RecordStore, needed: set[str]) -> Known:
    """The patient's chart: what the prefetch holds (null: looked up, none there), the rest from the record store.

    Raises:
        Problem: 412, what is `needed` stands in neither; 422, the prefetch is about another patient.
        StoreError: the store is out of reach, and the prefetch does not do without it.
    """
    patient_id, unchecked = given.context.patientId, list[str]()
    prefetch = given.prefetch or {}
    sent = {key: list(_resources(prefetch[key])) for key in TEMPLATES if key in prefetch}
    sent = {key: items for key, items in sent.items() if {_kind(item) for item in items} != {"OperationOutcome"}}
    pool = _medications(item for items in sent.values() for item in items)
    drafted = {_reference(entry.resource or {}) for entry in _entries(given)}
    for key, items in sent.items():
        readable = [item for item in map(lambda item: _named(item, pool), items) if _is_readable(item)]
        if others := len(items) - len(readable):
            unchecked.append(f"{others} of the {key} sent (not readable as FHIR R4)")
        _check_owner(readable, patient_id)
        sent[key] = [item for item in readable if _reference(item) not in drafted]
        links = (prefetch[key] or {}).get("link")
        if key != "observations" and isinstance(links, list) and any(_relation(link) == "next" for link in links):
            unchecked.append(f"further {key} (the list that was sent is one page of several)")
    if "patient" in sent and not any(_kind(item) == "Patient" for item in sent["patient"]):
        del sent["patient"]
    patient = next((item for item in sent.get("patient", []) if _kind(item) == "Patient"), {})
    missing = [key for key in TEMPLATES if key not in sent]
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
    chart = fhir.build_chart(
        {"id": patient_id, **(patient or (stored.record if stored else {}))},
        [item for items in sent.values() for item in items if _kind(item) != "Patient"],
        lambda kind, resource_id: None,
    )
    if stored:
        names = [name for key in missing for name in PARTS.get(key, ())]
        chart = replace(chart, notes=stored.notes, **{name: getattr(stored, name) for name in names})
        origin = f"sent with the request: {', '.join(sent)}; " if sent else ""
        return Known(chart, unchecked, f"{origin}{store.name}: {', '.join(missing)}" if missing else origin)
    unchecked += [f"{CHECKS[key]} (no {key} sent with the request)" for key in missing]
    return Known(chart, unchecked, f"sent with the request: {', '.join(sent)}")


def read_drafts(given: HookRequest) -> tuple[list[Draft], list[str]]:
    """The drafted medicines, and the references of orders that cannot be read.

    Raises:
        Problem: 422, there are too many, or one is of another patient.
    """
    entries = [(entry.fullUrl, entry.resource) for entry in _entries(given) if entry.resource]
    resources = [resource for _, resource in entries]
    _check_owner([item for item in resources if _kind(item) != "Medication"], given.context.patientId)
    pool = _medications(resources) | {url: item for url, item in entries if url and _kind(item) == "Medication"}
    orders = [item for item in resources if _kind(item).startswith("Medication") and _kind(item) != "Medication"]
    if len(orders) > ORDERS:
        raise Problem(422, f"There are more than {ORDERS} medication orders.", "Send fewer at a time.")
    found, unreadable = list[Draft](), list[str]()
    for order in orders:
        order = _named(order, pool)
        if _kind(order) == "MedicationRequest" and _is_readable(order) and (read := _draft(order)).name:
            found.append(read)
        else:
            unreadable.append(_reference(order))
    return found, unreadable


def selected(given: HookRequest) -> set[str] | None:
    """The references that order-select is about, None: all.

    Raises:
        Problem: 422, drafts or selections are missing, or a selection is not among the drafts.
    """
    chosen, at_hand = given.context.selections, {_reference(entry.resource or {}) for entry in _entries(given)}
    if given.hook == "order-select" and chosen is None:
        raise Problem(422, "The context has no `selections`.", "Send what was selected, as Type/id.")
    if given.hook != "order-select" or chosen is None:
        return None
    if not set(chosen) <= at_hand:
        raise Problem(422, "A selection is not among the `draftOrders`.", "Send each selected order with its id.")
    return set(chosen)


def _entries(given: HookRequest) -> list[Entry]:
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


def _draft(order: Resource) -> Draft:
    told = facts.medication({**order, "dosageInstruction": []})
    name = clean_text(told["name"], NAME_CHARS)
    items = [item for item in order.get("dosageInstruction") or [] if isinstance(item, dict)]
    doses = [(_dose(name, item), _frequency(item), _words(item)) for item in items]
    return Draft(_reference(order), name, [dose for dose in doses if any(dose)])


def _dose(name: str, item: Resource) -> str:
    """One dose, "1000 mg"; pieces and millilitres are counted out by the strength in the product's name."""
    given = _first(item.get("doseAndRate")) or item
    amount = given.get("doseQuantity") or (given.get("doseRange") or {}).get("high") or {}
    told = f"{amount.get('value', '')} {amount.get('unit') or amount.get('code') or ''}".strip()
    one = next(
        (quantity for quantity in quantities(told or str(item.get("text") or "")) if quantity.unit != "hour"), None
    )
    strengths = [quantity for quantity in quantities(name) if quantity.unit not in (*PIECES, "ml", "hour")]
    liquid = [part for part in name.lower().split() if part.endswith("/ml")]
    if one is None or not strengths or (one.unit in PIECES) == bool(liquid) or one.unit not in (*PIECES, "ml"):
        return clean_text(told or (f"{one.value:f} {one.unit}" if one else ""), 40)
    return " / ".join(f"{(one.value * quantity.value).normalize():f} {quantity.unit}" for quantity in strengths)


def _frequency(item: Resource) -> str:
    """How often, as the gate reads it: "2 times a day"; the instruction's own words where nothing is coded."""
    timing = _first(item.get("timing"))
    repeat, said = timing.get("repeat") or {}, facts.concept(timing.get("code"))
    count, unit = repeat.get("frequencyMax") or repeat.get("frequency"), HOURS.get(str(repeat.get("periodUnit")))
    if not (count and unit):
        return clean_text(said or str(item.get("text") or ""), 120)
    period = Decimal(str(repeat.get("period", 1))) * unit
    a_day = Decimal(str(count)) * 24 / period if period else Decimal(0)
    if a_day >= 1 and a_day == a_day.to_integral():
        return f"{a_day:f} times a day"
    return f"every {period / 24:f} days" if count == 1 else f"{count} times in {period} hours"


def _words(item: Resource) -> str:
    route, needed = facts.concept(item.get("route")), "as needed" if item.get("asNeededBoolean") else ""
    return clean_text(" ".join(filter(None, (route, needed, str(item.get("text") or "")))), 200)


def _is_readable(resource: Resource) -> bool:
    """Whether the rules can read it: it was written by others, in whatever shape."""
    try:
        patient = resource if _kind(resource) == "Patient" else {"id": "x"}
        fhir.patient_id_of(resource)
        chart = chart_data(fhir.build_chart({"id": "x", **patient}, [resource], lambda kind, resource_id: None))
        patient_state(chart, date.today())
        results_to_weigh(chart)
        if _kind(resource) == "MedicationRequest":
            _draft(resource)
    except (*SHAPE, InvalidOperation):
        return False
    return bool(_kind(resource)) and _fits(chart, PATIENT_CHART.data)


def _fits(value: Any, shape: Any) -> bool:
    """Whether data are of a tool's declared shape: a list where a text is due may pass unseen through what reads it."""
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(_fits(value.get(key), inner) for key, inner in shape.items())
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(item, shape[0]) for item in value)
    return isinstance(value, shape) or (shape is not str and isinstance(value, int))


def _named(order: Resource, pool: Mapping[str, Resource]) -> Resource:
    """An order that refers to its medicine, with the medicine's code in it."""
    said = order.get("medicationReference")
    reference = said.get("reference") if isinstance(said, dict) else None
    if not isinstance(reference, str) or order.get("medicationCodeableConcept"):
        return order
    contained = order.get("contained") if isinstance(order.get("contained"), list) else []
    inside = {f"#{item.get('id')}": item for item in contained or [] if isinstance(item, dict)}
    medicine = inside.get(reference) or pool.get(reference) or pool.get(fhir.local_reference(said)) or {}
    return {**order, "medicationCodeableConcept": medicine["code"]} if medicine.get("code") else order


def _medications(resources: Any) -> dict[str, Resource]:
    return {_reference(item): item for item in resources if _kind(item) == "Medication"}


def _check_owner(resources: list[Resource], patient_id: str) -> None:
    try:
        owners = {fhir.patient_id_of(item) for item in resources}
    except SHAPE as error:
        raise Problem(422, "A resource's patient cannot be read.", "Send FHIR R4 resources.") from error
    if owners - {"", patient_id}:
        raise Problem(422, "The request holds a resource of another patient.", "Send one patient's data.")


def _kind(resource: Resource) -> str:
    kind = resource.get("resourceType")
    return kind if isinstance(kind, str) else ""


def _reference(resource: Resource) -> str:
    return f"{_kind(resource)}/{resource.get('id')}"


def _relation(link: Any) -> Any:
    return link.get("relation") if isinstance(link, dict) else None


def _first(value: Any) -> Resource:
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, dict) else {}
