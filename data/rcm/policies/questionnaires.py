"""Write each policy as a FHIR R4 Questionnaire, in the manner of Da Vinci DTR, into the folder `fhir` beside this."""

import json
from pathlib import Path
from typing import Any

from docgemma.rcm.policy_files import load_policies
from docgemma.rcm.questionnaire import BASE, CODES, verdict_code
from docgemma.rcm.records import Policy

CPT = "http://www.ama-assn.org/go/cpt"
NOTICE = "A fictitious policy of a fictitious payer, for demonstration; not a coverage rule and not medical advice."


def build(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for key, policy in load_policies().items():
        written.append(folder / f"{key}.json")
        written[-1].write_text(json.dumps(questionnaire(policy), indent=2) + "\n", encoding="utf-8")
    return written


def questionnaire(policy: Policy) -> dict[str, Any]:
    """One group with a question a criterion: its verdict, and beneath it the quote that shows it and its place."""
    made: dict[str, Any] = {
        "resourceType": "Questionnaire",
        "id": policy["id"],
        "url": f"{BASE}/Questionnaire/{policy['id']}",
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
    return made | ({"code": [{"system": CPT, "code": code} for code in codes]} if codes else {})


def _question(key: str, text: str) -> dict[str, Any]:
    beneath = [
        {"linkId": f"{key}.quote", "text": "The words that show it", "type": "text", "required": False},
        {"linkId": f"{key}.source", "text": "Document, page and section", "type": "string", "required": False},
    ]
    options = [{"valueCoding": verdict_code(verdict)} for verdict in CODES]
    question = {"linkId": key, "prefix": key.rpartition(".")[2], "text": text, "type": "choice", "required": True}
    return {**question, "answerOption": options, "item": beneath}


if __name__ == "__main__":
    build(Path(__file__).with_name("fhir"))
