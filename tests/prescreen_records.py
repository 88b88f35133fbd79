"""Invented studies in the API's shape, for tests of the prescreen."""

import json
from pathlib import Path
from typing import Any


def study(number: int, title: str, conditions: list[str], **given: Any) -> dict[str, Any]:
    """A study as the API gives it; what is not given is absent."""
    section: dict[str, Any] = {
        "identificationModule": {"nctId": f"SYN-TRIAL-{number:05}", "briefTitle": title},
        "statusModule": {"overallStatus": given.get("status", "RECRUITING")},
        "conditionsModule": {"conditions": conditions, "keywords": given.get("keywords", [])},
        "designModule": {"studyType": given.get("kind", "INTERVENTIONAL"), "phases": given.get("phases", ["PHASE2"])},
        "descriptionModule": {"briefSummary": given.get("summary", "Invented.")},
        "armsInterventionsModule": {"interventions": [{"type": "DRUG", "name": n} for n in given.get("drugs", [])]},
        "eligibilityModule": {
            "eligibilityCriteria": given.get("criteria", "Inclusion Criteria:\n\n* Adults\n"), "sex": "ALL",
        } | given.get("eligibility", {}),
        "contactsLocationsModule": {"locations": [{"city": "Ghent", "country": "Belgium"}]},
    }  # fmt: skip
    meshes = [{"term": term} for term in given.get("synonyms", [])]
    return {"protocolSection": section, "derivedSection": {"conditionBrowseModule": {"meshes": meshes}}}


def write(path: Path, studies: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(item) + "\n" for item in studies), encoding="utf-8")
    return path
