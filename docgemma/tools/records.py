"""Finding a patient, and reading the chart."""

from typing import Any

from docgemma.ehr import facts as fhir
from docgemma.ehr.base import Chart, PatientMatch, RecordStore
from docgemma.ehr.names import query_tokens
from docgemma.ehr.summary import latest, summarize
from docgemma.errors import ErrorType, ToolError
from docgemma.reading.patients import find_people
from docgemma.schemas import PatientChartArgs, PatientSearchArgs
from docgemma.text.drugs import DrugNames, ingredients
from docgemma.text.words import SHORT
from docgemma.text.words import names as begins
from docgemma.tools.base import Tool, ToolContext, ToolOutput, bound, clip
from docgemma.tools.untrusted import clean

# what decides about drugs and urgency comes first
LABS = ("egfr", "potassium", "inr", "creatinine", "hemoglobin a1c", "troponin", "sodium", "hemoglobin", "platelet")
VITALS = ("blood pressure", "systolic", "diastolic", "heart rate", "oxygen", "respiratory", "temperature", "pain")


def search_patient(args: PatientSearchArgs, context: ToolContext) -> ToolOutput:
    """The one patient of that name, of that id or MRN, or of that name and birth date.

    Data (`PATIENT_SEARCH.data`): `patients` holds one patient, or none (`empty`). `guessed`: the record spells the name
    differently. `namesakes`: labels of those who have the name of somebody whose birth fits nobody.

    Raises:
        ToolError: `multiple_patient_matches` with `options: [{"id", "label"}]`, `count` and `entity`; an outage.
    """
    matches = find_people(args.name, context.store)
    matches = [item for item in matches if not item.guessed] or matches
    if len(matches) > 1:
        options = [{"id": item.id, "label": item.label} for item in matches]
        raise ToolError(ErrorType.MULTIPLE_PATIENT_MATCHES, entity=args.name, count=len(matches), options=options)
    found = [_patient(item) | {"guessed": item.guessed, "identifiers": list(item.identifiers)} for item in matches]
    name, born, _ = args.name.partition(", born ")
    others = [] if matches else find_people(name, context.store) if born else _alike(name, context.store)
    namesakes = [item.label for item in others if not (born and item.guessed)]
    data = {"name": args.name, "patients": found, "namesakes": namesakes}
    return ToolOutput(data, context.store.name, empty=not matches)


def _alike(name: str, store: RecordStore) -> list[PatientMatch]:
    """Patients with one word of a name whose other words begin alike: Walter Kowalczyk of "walter kowalski"."""
    words = query_tokens(name)
    found = {item.id: item for word in words for item in store.search_patients(word)} if len(words) > 1 else {}
    return [item for item in found.values() if all(begins([word[: SHORT + 1]], item.name) for word in words)]


def format_search(data: dict[str, Any]) -> str:
    if not data["patients"]:
        near = "Of this name" if ", born " in data["name"] else "Of a like name, who may be somebody else"
        others = f" {near}: {'; '.join(data['namesakes'])}." if data.get("namesakes") else ""
        return f"No patient named {data['name']} was found.{others} Check the spelling, or give a birth date or an ID."
    lines = []
    for item in data["patients"]:
        numbers = f", MRN {', '.join(item['identifiers'])}" if item.get("identifiers") else ""
        lines.append(f"Found patient {item['label']}, patient ID {item['id']}{numbers}.")
    if data["patients"][0]["guessed"]:
        lines.append(
            f"The record spells it otherwise than typed ({data['name']}); this is the closest match. Please confirm."
        )
    return bound(lines)


def get_patient_chart(args: PatientChartArgs, context: ToolContext) -> ToolOutput:
    """The clinical summary of one patient. Every list is what the record holds; [] means looked up, none recorded.

    Data (`PATIENT_CHART.data`): texts are "" and dates partial or "" where the record does not say.
        `no_known_allergies`: documented as such, which differs from nothing recorded
        `labs`, `vitals`, `social` (smoking status and the like): the latest of each kind, with the two before it;
            `flag` is high, low, critically high, critically low, abnormal, positive, normal, negative or "" (unknown)
        `identifiers`: record numbers beside the id
        `deceased`: date, "yes" if only the fact is known, "" if the record does not say so

    Raises:
        ToolError: `not_found` (no such patient id), or an outage.
    """
    chart = context.store.chart(args.patient_id.strip())
    if chart is None:
        raise ToolError(ErrorType.NOT_FOUND, "no such patient", entity=args.patient_id)
    return ToolOutput(chart_data(chart), context.store.name)


def active_ingredients(chart: dict[str, Any], drugs: DrugNames | None) -> frozenset[str]:
    """What is in the active medicines of a chart, as `chart_data` gives it."""
    active = [item["name"] for item in chart["medications"] if item["active"]]
    return frozenset(part for name in active for part in ingredients(name, drugs))


def chart_data(chart: Chart) -> dict[str, Any]:
    """The chart as the data of `get_patient_chart`, cleaned: a record's texts were written by others."""
    told = summarize(chart)
    person = told["patient"]
    told |= {"conditions": told.pop("problems"), "social": told.pop("observations")}
    told |= {kind: latest(told[kind]) for kind in ("labs", "vitals", "social")}
    told |= {"deceased": person["deceased"], "language": person["language"]}
    told |= {"patient": _patient(chart.patient), "identifiers": list(chart.patient.identifiers)}
    return clean(told)


def format_chart(data: dict[str, Any]) -> str:
    abnormal = [item for item in data["labs"] if item["flag"] not in fhir.NOT_ABNORMAL]
    abnormal.sort(key=lambda item: (not item["flag"].startswith("critically"), _rank(item["name"], LABS)))
    vitals = sorted(data["vitals"], key=lambda item: (item["flag"] in fhir.NOT_ABNORMAL, _rank(item["name"], VITALS)))
    active = [item for item in data["medications"] if item["active"]]
    died = f" on {data['deceased'][:10]}" if data["deceased"] != "yes" else ""
    return bound(
        [
            f"Patient {data['patient']['label']}, patient ID {data['patient']['id']}.",
            f"This patient is recorded as deceased{died}." if data["deceased"] else "",
            *_allergy_lines(data),
            *(f"Active problem: {item['name']}." for item in data["conditions"] if item["active"]),
            *(f"Active medication: {item['name']} {item['dosage']}".strip() + "." for item in active),
            "" if active else "No active medications are recorded.",
            *(f"Abnormal lab: {_measured(item)}." for item in abnormal),
            *(f"Lab: {_measured(item)}." for item in data["labs"] if item not in abnormal),
            "" if data["labs"] else "No lab results are recorded.",
            *(f"Vital sign: {_measured(item)}." for item in vitals),
            *(f"History: {_measured(item)}." for item in data["social"]),
            *(f"Note ({_dated(item['type'], item['date'])}): {clip(item['text'], 160)}" for item in data["notes"]),
            *(f"Immunization: {_dated(item['name'], item['date'])}." for item in data["immunizations"]),
            *(f"Past problem: {item['name']}." for item in data["conditions"] if not item["active"]),
            *(f"Past medication: {item['name']}." for item in data["medications"] if not item["active"]),
        ],
        line_limit=220,
    )


def _allergy_lines(data: dict[str, Any]) -> list[str]:
    if not data["allergies"]:
        return ["No known allergies." if data["no_known_allergies"] else "No allergies are recorded in the chart."]
    lines = []
    for item in sorted(data["allergies"], key=lambda item: item["severity"] != "severe"):
        detail = ", ".join(part for part in (item["reaction"], item["severity"]) if part)
        word = "Allergy" if item["active"] else "Past allergy"
        lines.append(f"{word}: {item['substance']}{f' ({detail})' if detail else ''}.")
    return lines


def _measured(item: dict[str, Any]) -> str:
    value = f"{item['name']} {item['value']} {item['unit']}".strip()
    detail = ", ".join(part for part in (item["flag"], item["date"]) if part)
    return f"{value} ({detail})" if detail else value


def _rank(name: str, order: tuple[str, ...]) -> int:
    name = name.lower()
    return next((rank for rank, word in enumerate(order) if word in name and f"/{word}" not in name), len(order))


def _dated(name: str, date: str) -> str:
    return f"{name}, {date}" if date else name


def _patient(match: PatientMatch) -> dict[str, Any]:
    return {name: getattr(match, name) for name in ("id", "name", "birth_date", "sex", "label")}


PATIENT = {"id": str, "name": str, "birth_date": str, "sex": str, "label": str}
MEASURED = {
    "name": str, "value": str, "unit": str, "flag": str, "date": str, "low": float | None, "high": float | None,
    "code": str, "earlier": [{"value": str, "date": str}],
}  # fmt: skip

PATIENT_SEARCH = Tool(
    name="search_patient",
    label="Patient Search",
    signature="(name: str)",
    description=(
        "Search the electronic health record system for a patient by name. Returns matching patient IDs and basic "
        "demographics. Use when a clinician mentions a patient by name and needs to look them up."
    ),
    args=PatientSearchArgs,
    example="Find patient Anna Kowalski",
    run=search_patient,
    format=format_search,
    no_answer="The record system did not respond. No patient was looked up.",
    needs="plan",
    data={"name": str, "patients": [{**PATIENT, "guessed": bool, "identifiers": [str]}], "namesakes": [str]},
)

PATIENT_CHART = Tool(
    name="get_patient_chart",
    label="Patient Record",
    signature="(patient_id: str)",
    description=(
        "Retrieve the full clinical summary for a patient, including diagnoses, medications, allergies, lab results, "
        "and vitals. Requires a patient ID (not a name). Use when a clinician wants to review a patient's record."
    ),
    args=PatientChartArgs,
    example="Show me the chart of patient xyz-321",
    run=get_patient_chart,
    format=format_chart,
    no_answer="The record system did not respond. The chart was not read.",
    needs="patient",
    data={
        "patient": PATIENT,
        "allergies": [{
            "substance": str, "reaction": str, "severity": str, "criticality": str, "active": bool, "recorded": str,
        }],
        "no_known_allergies": bool,
        "conditions": [{"name": str, "active": bool, "onset": str, "resolved": str}],
        "medications": [{
            "name": str, "dosage": str, "active": bool, "status": str, "started": str, "reason": str,
        }],
        "labs": [MEASURED], "vitals": [MEASURED], "social": [MEASURED],
        "deceased": str, "identifiers": [str], "language": str,
        "notes": [{"type": str, "date": str, "author": str, "text": str}],
        "immunizations": [{"name": str, "date": str}],
    },
)  # fmt: skip
