"""A checklist as a FHIR R4 QuestionnaireResponse, in the manner of Da Vinci DTR (questionnaires: data/rcm/policies)."""

from collections.abc import Sequence
from typing import Any

from docgemma.rcm.records import Judged, Policy, Verdict

BASE = "https://docgemma.example/fhir"  # .example is reserved: it can belong to nobody
CODES: dict[Verdict, str] = {"MET": "met", "NOT MET": "not-met", "NOT DOCUMENTED": "not-documented"}


def response(policy: Policy, judged: Sequence[Judged], patient_id: str, authored: str) -> dict[str, Any]:
    """A checklist as a QuestionnaireResponse: each criterion's verdict, with quote and place where there is one.

    Args:
        judged: of this policy, in any order; "completed" when it covers each criterion, else "in-progress".
        patient_id: of the record store; "" for a patient who is only in a document: the response names no subject.
        authored: ISO date, or date and time with its zone.
    """
    by_id = {one["id"]: one for one in judged}
    known = [criterion["id"] for criterion in policy["criteria"]]
    answers = [_answered(by_id[key]) for key in known if key in by_id]
    made: dict[str, Any] = {
        "resourceType": "QuestionnaireResponse",
        "questionnaire": f"{BASE}/Questionnaire/{policy['id']}|{policy['effective']}",
        "status": "completed" if len(answers) == len(known) else "in-progress",
        "authored": authored,
        "item": [{"linkId": policy["id"], "text": f"Criteria for {policy['title']}", "item": answers}],
    }
    return made | ({"subject": {"reference": f"Patient/{patient_id}"}} if patient_id else {})


def verdict_code(verdict: Verdict) -> dict[str, str]:
    return {"system": f"{BASE}/CodeSystem/criterion-verdict", "code": CODES[verdict], "display": verdict}


def _answered(one: Judged) -> dict[str, Any]:
    """The answer to one question; quote and source stand beneath the verdict, as R4 nests them."""
    answer: dict[str, Any] = {"valueCoding": verdict_code(one["verdict"])}
    if one["quote"]:
        source = ", ".join([one["document"], f"page {one['page']}", one["section"]])
        told = {"quote": one["quote"], "source": source}
        answer["item"] = [{"linkId": f"{one['id']}.{name}", "answer": [{"valueString": text}]}
                          for name, text in told.items()]  # fmt: skip
    return {"linkId": one["id"], "text": one["text"], "answer": [answer]}
