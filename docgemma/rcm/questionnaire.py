"""A policy as a FHIR R4 Questionnaire in the manner of Da Vinci DTR, and a checklist as the response to it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docgemma.ehr.fhir import problems_of
from docgemma.errors import ConfigError, UsageError
from docgemma.paths import data_file
from docgemma.rcm.policy_files import load_policies
from docgemma.rcm.records import Judged, Policy, Verdict

BASE = "https://docgemma.example/fhir"  # .example is reserved: it can belong to nobody
VERDICTS = f"{BASE}/CodeSystem/criterion-verdict"
CPT = "http://www.ama-assn.org/go/cpt"
CODES: dict[Verdict, str] = {"MET": "met", "NOT MET": "not-met", "NOT DOCUMENTED": "not-documented"}
NOTICE = "A fictitious policy of a fictitious payer, for demonstration; not a coverage rule and not medical advice."


def questionnaire(policy: Policy) -> dict[str, Any]:
    """One group with a question a criterion: its verdict, and beneath it the quote that shows it and where that stands.

    Raises:
        ConfigError: what came of the policy is no valid FHIR R4.
    """
    made: dict[str, Any] = {
        "resourceType": "Questionnaire",
        "id": policy["id"],
        "url": _url(policy),
        "version": policy["effective"],
        "name": policy["id"].replace("-", "_"),
        "title": f"{policy['payer']}: {policy['title']}",
        "status": "active",
        "experimental": True,
        "subjectType": ["Patient"],
        "publisher": f"{policy['payer']} (fictitious)",
        "description": NOTICE,
        "effectivePeriod": {"start": policy["effective"]},
        "item": [
            {
                "linkId": policy["id"],
                "text": f"Criteria for {policy['title']}",
                "type": "group",
                "required": True,
                "item": [_question(criterion["id"], criterion["text"]) for criterion in policy["criteria"]],
            }
        ],
    }
    # HCPCS codes (a letter first) have another system; CPT's are five digits
    codes = [code for one in policy["procedures"] for code in one["codes"] if code.isdigit()]
    if codes:
        made["code"] = [{"system": CPT, "code": code} for code in codes]
    return _valid(made)


def response(policy: Policy, judged: Sequence[Judged], patient_id: str, authored: str) -> dict[str, Any]:
    """A checklist as a QuestionnaireResponse: each criterion's verdict, with quote and place where there is one.

    Args:
        judged: of this policy, in any order; "completed" when it covers each criterion, else "in-progress".
        patient_id: of the record store; "" for a patient who is only in a document: the response names no subject.
        authored: ISO date, or date and time with its zone.

    Raises:
        UsageError: a verdict is of no criterion of this policy, or two are of one.
        ConfigError: what came of it is no valid FHIR R4.
    """
    by_id = {one["id"]: one for one in judged}
    known = [criterion["id"] for criterion in policy["criteria"]]
    if len(by_id) != len(judged) or not set(by_id) <= set(known):
        raise UsageError("The checklist is not of this policy.", hint=f"Judge each criterion of {policy['id']} once.")
    made: dict[str, Any] = {
        "resourceType": "QuestionnaireResponse",
        "questionnaire": f"{_url(policy)}|{policy['effective']}",
        "status": "completed" if len(by_id) == len(known) else "in-progress",
        "authored": authored,
        "item": [
            {
                "linkId": policy["id"],
                "text": f"Criteria for {policy['title']}",
                "item": [_answered(by_id[key]) for key in known if key in by_id],
            }
        ],
    }
    if patient_id:
        made["subject"] = {"reference": f"Patient/{patient_id}"}
    return _valid(made)


def build(folder: Path | None = None) -> list[Path]:
    """Write each policy as a Questionnaire in JSON to a folder, `data/rcm/policies/fhir` unless told."""
    folder = folder or data_file("rcm", "policies") / "fhir"
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for key, policy in load_policies().items():
        written.append(folder / f"{key}.json")
        written[-1].write_text(json.dumps(questionnaire(policy), indent=2) + "\n", encoding="utf-8")
    return written


def _question(key: str, text: str) -> dict[str, Any]:
    beneath = [
        {"linkId": f"{key}.quote", "text": "The words that show it", "type": "text", "required": False},
        {"linkId": f"{key}.source", "text": "Document, page and section", "type": "string", "required": False},
    ]
    options = [{"valueCoding": _verdict(verdict)} for verdict in CODES]
    question = {"linkId": key, "prefix": key.rpartition(".")[2], "text": text, "type": "choice", "required": True}
    return {**question, "answerOption": options, "item": beneath}


def _answered(one: Judged) -> dict[str, Any]:
    """The answer to one question; quote and source stand beneath the verdict, as R4 nests them."""
    answer: dict[str, Any] = {"valueCoding": _verdict(one["verdict"])}
    if one["quote"]:
        page = f"page {one['page']}" if one["page"] else ""
        source = ", ".join(part for part in (one["document"], page, one["section"]) if part)
        answer["item"] = [{"linkId": f"{one['id']}.quote", "answer": [{"valueString": one["quote"]}]}]
        if source:
            answer["item"].append({"linkId": f"{one['id']}.source", "answer": [{"valueString": source}]})
    return {"linkId": one["id"], "text": one["text"], "answer": [answer]}


def _verdict(verdict: Verdict) -> dict[str, str]:
    return {"system": VERDICTS, "code": CODES[verdict], "display": verdict}


def _url(policy: Policy) -> str:
    return f"{BASE}/Questionnaire/{policy['id']}"


def _valid(made: dict[str, Any]) -> dict[str, Any]:
    if problems := problems_of(made):
        said = "; ".join(f"{place}: {what}" for place, what in problems[:3])
        raise ConfigError(f"The {made['resourceType']} is no valid FHIR R4 ({said}).", hint="See data/rcm/policies.")
    return made


if __name__ == "__main__":
    build()
