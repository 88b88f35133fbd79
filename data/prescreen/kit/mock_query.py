"""The part of ClinicalTrials.gov's query language (Essie) that the mock server understands.

A query is parsed into a function that scores one study in one search area: 0 means no match. Words are joined by AND,
compared without plural endings, and may stand in different fields of the area. Synonyms are what the record's own
browse module lists. Not here: UMLS expansion, geography, COVER, proximity. Source: clinicaltrials.gov/find-studies.
"""

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

from docgemma.prescreen.registry import years

MODULES = {  # data elements of the API: their names, and where they stand in a module of a study
    "protocolSection.identificationModule": "NCTId:nctId Acronym:acronym BriefTitle:briefTitle "
    "OfficialTitle:officialTitle",
    "protocolSection.statusModule": "OverallStatus:overallStatus",
    "protocolSection.sponsorCollaboratorsModule": "LeadSponsorName:leadSponsor.name",
    "protocolSection.descriptionModule": "BriefSummary:briefSummary DetailedDescription:detailedDescription",
    "protocolSection.conditionsModule": "Condition:conditions Keyword:keywords",
    "protocolSection.designModule": "StudyType:studyType Phase:phases",
    "protocolSection.armsInterventionsModule.interventions": "InterventionType:type InterventionName:name "
    "InterventionOtherName:otherNames InterventionDescription:description",
    "protocolSection.outcomesModule": "PrimaryOutcomeMeasure:primaryOutcomes.measure",
    "protocolSection.eligibilityModule": "EligibilityCriteria:eligibilityCriteria Sex:sex MinimumAge:minimumAge "
    "MaximumAge:maximumAge",
    "protocolSection.contactsLocationsModule.locations": "LocationFacility:facility LocationCity:city "
    "LocationState:state LocationCountry:country",
    "derivedSection.conditionBrowseModule": "ConditionMeshTerm:meshes.term ConditionAncestorTerm:ancestors.term",
    "derivedSection.interventionBrowseModule": "InterventionMeshTerm:meshes.term",
}
PIECES = {
    name: f"{module}.{path}"
    for module, pairs in MODULES.items() for name, path in (pair.split(":") for pair in pairs.split())
}  # fmt: skip
TITLES = {"BriefTitle": 0.6, "OfficialTitle": 0.55}
AREAS: dict[str, dict[str, float]] = {  # field: weight in the order of the results
    "query.cond": {"Condition": 0.95, **TITLES, "ConditionMeshTerm": 0.5, "ConditionAncestorTerm": 0.4, "Keyword": 0.3},
    "query.intr": {"InterventionName": 0.95, "InterventionOtherName": 0.75, **TITLES, "InterventionMeshTerm": 0.5,
                   "Keyword": 0.3, "InterventionDescription": 0.2},
    "query.titles": {**TITLES, "Acronym": 1.0},
    "query.lead": {"LeadSponsorName": 1.0}, "query.outc": {"PrimaryOutcomeMeasure": 1.0},
    "query.locn": dict.fromkeys(("LocationFacility", "LocationCity", "LocationState", "LocationCountry"), 1.0),
    "query.id": {"NCTId": 1.0},
    "query.term": dict.fromkeys(PIECES, 0.2) | {"NCTId": 1.0, "Condition": 0.8, "Keyword": 0.6, **TITLES},
}  # fmt: skip
ENUMS = {
    "OverallStatus": "ACTIVE_NOT_RECRUITING COMPLETED ENROLLING_BY_INVITATION NOT_YET_RECRUITING RECRUITING SUSPENDED "
    "TERMINATED WITHDRAWN AVAILABLE NO_LONGER_AVAILABLE TEMPORARILY_NOT_AVAILABLE APPROVED_FOR_MARKETING WITHHELD "
    "UNKNOWN".split(),
    "Phase": "NA EARLY_PHASE1 PHASE1 PHASE2 PHASE3 PHASE4".split(),
    "StudyType": "EXPANDED_ACCESS INTERVENTIONAL OBSERVATIONAL".split(),
    "Sex": "FEMALE MALE ALL".split(),
}
TOKEN = re.compile(r'"[^"]*"?|\[[^\]]*\]?|[()]|[^ \t\n,()"\[]+')  # phrases, names in brackets, brackets, words
STOP = {"a", "an", "and", "for", "in", "of", "or", "the", "to", "with"}
Score = Callable[["Indexed", dict[str, float]], float]


class QueryError(ValueError):
    """A query that the API would refuse with HTTP 400."""


class Indexed:
    """A study with its words by field, each list of stems between blanks."""

    def __init__(self, raw: dict[str, Any]):
        self.raw = raw

    @cached_property
    def text(self) -> dict[str, str]:
        found = {name: " | ".join(map(stems, values(self.raw, path))) for name, path in PIECES.items()}
        return {name: f" {text} " for name, text in found.items() if text}

    def score(self, wanted: str, area: dict[str, float]) -> float:
        return max((area[name] for name in area if f" {wanted} " in self.text.get(name, "")), default=0.0)


def values(raw: Any, path: str) -> list[str]:
    """The texts at a dotted path, through lists."""
    if isinstance(raw, list):
        return [text for item in raw for text in values(item, path)]
    if path and isinstance(raw, dict):
        name, _, rest = path.partition(".")
        return values(raw.get(name), rest)
    return [] if raw is None or path else [str(raw)]


def stems(text: str) -> str:
    words = "".join(char if char.isalnum() else " " for char in text.lower()).split()
    return " ".join(_stem(word) for word in words if word not in STOP)


def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "sui" else word


def parse(query: str, where: str) -> Score:
    """A query as a scoring function.

    Args:
        where: how the API calls this parameter in its errors, "Conditions or disease".

    Raises:
        QueryError: in the API's words.
    """
    parser = _Parser(TOKEN.findall(query), where)
    score = parser.any_of()
    if parser.left:
        raise parser.unexpected()
    return score


class _Parser:
    """any_of: all_of OR ...; all_of: one AND ... (AND may be left out); one: NOT, AREA, RANGE, brackets, words."""

    def __init__(self, tokens: list[str], where: str):
        self.left, self.where = tokens, where

    def unexpected(self) -> QueryError:
        token = self.left[0][0] if self.left else "<EOF>"
        expected = "{<EOF>, '(', ',', 'NOT', 'AND', 'OR'}"
        return QueryError(f"Error parsing query in {self.where}: mismatched input '{token}' expecting {expected}")

    def any_of(self) -> Score:
        parts = [self.all_of()]
        while self.left and self.left[0] == "OR":
            self.left.pop(0)
            parts.append(self.all_of())
        return lambda study, area: max(part(study, area) for part in parts)

    def all_of(self) -> Score:
        parts = [self.one()]
        while self.left and self.left[0] not in ("OR", ")"):
            if self.left[0] == "AND":
                self.left.pop(0)
            parts.append(self.one())

        def score(study: Indexed, area: dict[str, float]) -> float:
            found = [part(study, area) for part in parts]
            return sum(found) if all(found) else 0.0

        return score

    def one(self) -> Score:
        if not self.left or self.left[0] in ("AND", "OR", ")") or self.left[0].startswith("["):
            raise self.unexpected()
        token = self.left.pop(0)
        if token == "(":
            inside = self.any_of()
            if not self.left or self.left.pop(0) != ")":
                raise QueryError(f"Error parsing query in {self.where}: missing ')' at '<EOF>'")
            return inside
        if token == "NOT":
            negated = self.one()
            return lambda study, area: 0.0 if negated(study, area) else 0.1
        if token in ("AREA", "RANGE", "EXPANSION", "SEARCH") and self.left and self.left[0].startswith("["):
            inside_brackets = self.left.pop(0).strip("[] ")
            if token in ("AREA", "RANGE"):
                return self.area(inside_brackets) if token == "AREA" else self.between(inside_brackets)
            return self.one()
        wanted = stems(token)
        return (lambda study, area: study.score(wanted, area)) if wanted else lambda study, area: 0.1

    def area(self, name: str) -> Score:
        fields = AREAS.get({"ConditionSearch": "query.cond", "InterventionSearch": "query.intr"}.get(name, ""))
        if fields is None and name not in PIECES:
            raise QueryError(f"Error parsing query in {self.where}: unknown area '{name}'")
        if name in ENUMS:
            self._check_values(name)
        inner, own = self.one(), fields or {name: 1.0}
        return lambda study, area: inner(study, own)

    def _check_values(self, name: str) -> None:
        """Every value of an enumeration that follows must be one of its own."""
        end = self.left.index(")") if self.left and self.left[0] == "(" and ")" in self.left else 1
        for token in self.left[:end]:
            if token not in ("(", ")", "AND", "OR", "NOT") and token not in ENUMS[name]:
                allowed = ", ".join(f"`{value}`" for value in ENUMS[name])
                raise QueryError(
                    f"Error parsing query in {self.where}: Allowed values for enum field `{PIECES[name]}` are {allowed}"
                )

    def between(self, bounds: str) -> Score:
        """RANGE[MIN, 61 years]: ages and dates. A study without the field is never inside."""
        low, _, high = (part.strip() for part in bounds.partition(","))

        def score(study: Indexed, area: dict[str, float]) -> float:
            found = [value for name in area for value in values(study.raw, PIECES[name])]
            return float(any(_inside(low, value, high) for value in found))

        return score


def _inside(low: str, value: str, high: str) -> bool:
    age = years(value)
    if age is None:
        return (low == "MIN" or low <= value) and (high == "MAX" or value <= high)
    return (years(low) or 0.0) <= age <= (float("inf") if high == "MAX" else years(high) or 0.0)
