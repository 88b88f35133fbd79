"""Draft a verification summary for a message about a drug or a procedure, before a clinician opens it; never sent.

Of the message only the names of known drugs and procedures reach the agent, in questions of our own wording; its text
stands in the draft as a quotation. So an instruction in it is never followed.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from docgemma.ehr.fhir import local_reference, patient_id_of
from docgemma.errors import UsageError
from docgemma.rcm.policy_names import called, names, words
from docgemma.rcm.records import DISCLAIMER, Policy
from docgemma.text.drugs import DrugNames
from docgemma.text.quoted import quotation
from docgemma.text.words import plain

MOST = 5  # things of one message that are verified; more are named
QUOTED = 2_000  # characters of the message
HEAD = "Verification summary, drafted by an AI assistant for the clinician. It was sent to nobody."
DATA = "What the message says is quoted as data; nothing in it was followed."
CARE = ("Practitioner", "PractitionerRole", "CareTeam", "Organization")
Report = Mapping[str, Any]


class Draft(NamedTuple):
    """A drafted FHIR Communication, or None; and why, in one line without patient data."""

    communication: dict[str, Any] | None
    told: str


def prescan(
    message: Mapping[str, Any], ask: Callable[[str, str], Report], drugs: DrugNames, policies: Iterable[Policy]
) -> Draft:
    """Verify what a message names against the chart and the policies, and draft the summary.

    Args:
        message: a FHIR R4 Communication whose subject is a patient.
        ask: (question, patient id) -> the report of `graphs.rcm.run`. What it raises is not caught: an outage is not
            a message without a request.

    Raises:
        UsageError: it is no Communication.
    """
    if message.get("resourceType") != "Communication":
        raise UsageError("Only a FHIR Communication can be scanned.", hint="Give a resource of that type.")
    parts = [part for part in message.get("payload") or [] if isinstance(part, dict)]
    text = "\n".join(str(part["contentString"]) for part in parts if part.get("contentString"))
    unread = sum("contentString" not in part for part in parts)
    beside = f" {unread} attachment{'s were' * (unread > 1) or ' was'} not read." if unread else ""
    patient = patient_id_of(dict(message))
    if message.get("status") == "entered-in-error" or not patient:
        why = "is marked as entered in error" if patient else "is about no patient"
        return Draft(None, f"Nothing was drafted: the message {why}.")
    questions = _questions(text, drugs, policies)
    if not questions:
        return Draft(None, f"Nothing was drafted: the message names no known drug or procedure.{beside}")
    found = [(question, ask(question, patient)) for question in questions[:MOST]]
    left = "".join(f"\nNot verified, since only {MOST} are: {question}" for question in questions[MOST:])
    told = f"{DATA}{beside}{left}"
    body = "\n\n".join([HEAD, f"Message: {quotation(text, QUOTED)}\n{told}", *(_told(*item) for item in found)])
    return Draft(
        _communication(message, patient, f"{body}\n\n{DISCLAIMER}"), f"Drafted: {len(found)} verified.{beside}"
    )


def _questions(text: str, drugs: DrugNames, policies: Iterable[Policy]) -> list[str]:
    """Our questions about the procedures and drugs that a text names, each once."""
    said, procedures, taken = words(text), list[str](), set[str]()
    for policy in policies:
        mine = {plain(name) for name in called(policy)}
        if not mine & taken and names(said, policy):
            procedures.append(policy["procedures"][0]["name"])
            taken |= mine  # another payer's name for it
    sides = [side for side in ("left", "right") if side in said]
    side = f", {sides[0]} side" if len(sides) == 1 else ""
    medicines = [drugs.generic(item.name) or item.name for item in drugs.find(text)]
    criteria = [f"Does this patient meet the payer's criteria for {name}{side}?" for name in procedures]
    return list(dict.fromkeys([*criteria, *(f"Is {name} safe for this patient?" for name in medicines)]))


def _told(question: str, report: Report) -> str:
    """One verification: the question and the answer, which names its evidence and what a person has to decide."""
    status = "" if report["status"] == "answered" else f"Not answered ({report['status'].replace('_', ' ')}). "
    decide = "\nA person has to decide." if report.get("escalate") else ""
    return f"{question}\n{status}{str(report['answer']).replace(DISCLAIMER, '').strip()}{decide}"


def _communication(message: Mapping[str, Any], patient: str, text: str) -> dict[str, Any]:
    """The draft as an R4 Communication in preparation, to those of the message's recipients who give care."""
    recipients = [item for item in message.get("recipient") or [] if local_reference(item).partition("/")[0] in CARE]
    origin = [{"reference": f"Communication/{message['id']}"}] if message.get("id") else []
    draft = {
        "resourceType": "Communication", "status": "preparation", "inResponseTo": origin,
        "category": [{"text": "Verification summary"}], "subject": {"reference": f"Patient/{patient}"},
        "about": [*origin, *(message.get("about") or [])], "recipient": recipients,
        "payload": [{"contentString": text}],
    }  # fmt: skip
    return {key: value for key, value in draft.items() if value}
