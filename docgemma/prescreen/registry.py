"""Search ClinicalTrials.gov (API v2), or a server that speaks as it does. Source: clinicaltrials.gov/data-api/api."""

import re
from typing import Any, NamedTuple
from urllib.parse import quote

from docgemma.errors import ErrorType, ToolError
from docgemma.http import Deadline
from docgemma.knowledge import trials
from docgemma.knowledge.http import Service, Wire, at
from docgemma.knowledge.label_text import plain
from docgemma.prescreen.records import Study
from docgemma.settings import Settings

HOUR = 3600.0
PAGE_SIZE = 50
LARGEST_PAGE = 100
FIELDS = "NCTId,BriefTitle,OverallStatus,Condition,Keyword,StudyType,Phase,InterventionName,MinimumAge,MaximumAge,Sex"
FIELDS += ",EligibilityCriteria"  # so that nothing is asked twice for ranking and screening
YEARS = {"year": 1.0, "month": 1 / 12, "week": 7 / 365.25, "day": 1 / 365.25, "hour": 1 / 8766, "minute": 1 / 525960}
QUERIES = {"condition": "query.cond", "intervention": "query.intr", "location": "query.locn"}
OPERATORS = re.compile(r"[^\w\s.,'/+-]|\b(?:AND|OR|NOT|AREA|SEARCH|RANGE|EXPANSION|COVER|MISSING)\b")


class Record(trials.Study):
    min_age: str = at("protocolSection.eligibilityModule.minimumAge", default="")
    max_age: str = at("protocolSection.eligibilityModule.maximumAge", default="")
    sex: str = at("protocolSection.eligibilityModule.sex", default="")
    criteria: str = at("protocolSection.eligibilityModule.eligibilityCriteria", default="")

    def study(self) -> Study:
        return Study(
            id=self.id, title=plain(self.title), status=self.status, study_type=self.study_type,
            phases=list(self.phases),
            conditions=[plain(item) for item in self.conditions], keywords=[plain(item) for item in self.keywords],
            interventions=[plain(item.name) for item in self.interventions if item.name],
            min_age=years(self.min_age), max_age=years(self.max_age), sex=self.sex, criteria=self.criteria,
            url=f"{trials.PAGE}/{self.id}" if self.id.startswith("NCT") else "",
        )  # fmt: skip


class Records(Wire):
    studies: list[Record]
    nextPageToken: str | None = None
    totalCount: int | None = None


class Found(NamedTuple):
    """One page of a search. `token`: of the next page; `total`: given on the first page."""

    studies: list[Study]
    token: str | None
    total: int | None


class Registry:
    """Callers may come from any thread. Every failure is a ToolError; an outage is never "nothing found"."""

    def __init__(self, settings: Settings):
        self._timeout = settings.tool_timeout
        cache = settings.home / "http-cache"
        self._service = Service("ClinicalTrials.gov", settings.ctgov_url, "DOCGEMMA_CTGOV_URL", 1, 30, 12 * HOUR, cache)

    def search(self, args: dict[str, Any]) -> Found:
        """One page of trials.

        Raises:
            ToolError: `invalid_args` where nothing is searched for, or an outage.
        """
        params = parameters(args)
        page = self._service.get("studies", params, Records.model_validate, Deadline.after(self._timeout)).data
        return Found([record.study() for record in page.studies], page.nextPageToken, page.totalCount)

    def study(self, trial: str) -> Study:
        """One trial with its criteria.

        Raises:
            ToolError: `not_found`, or an outage.
        """

        def missing(body: bytes) -> Record:
            raise self._service.failed(ErrorType.NOT_FOUND, f"has no trial {trial!r}")

        path = f"studies/{quote(trial, safe='')}"
        done = self._service.get(path, {}, Record.model_validate, Deadline.after(self._timeout), missing)
        return done.data.study()

    def close(self) -> None:
        self._service.close()


def parameters(args: dict[str, Any]) -> dict[str, str]:
    """The query of a search in the API's own names. Operators of its query language are taken out of the words."""
    params = {name: " ".join(OPERATORS.sub(" ", str(args.get(key) or "")).split()) for key, name in QUERIES.items()}
    terms = []
    if words := " ".join(OPERATORS.sub(" ", args.get("eligibility_keywords") or "").split()):
        terms.append(f"AREA[EligibilityCriteria]({words})")
    if not any((*params.values(), *terms)):
        raise ToolError(ErrorType.INVALID_ARGS, "Say what to search for: a condition, an intervention or keywords.")
    if phases := args.get("phase"):
        terms.append("AREA[Phase](" + " OR ".join(phases) + ")")
    if kind := args.get("study_type"):
        terms.append(f"AREA[StudyType]{kind}")
    if age := args.get("age"):
        terms.append(f"AREA[MinimumAge]RANGE[MIN, {age} years] AND AREA[MaximumAge]RANGE[{age} years, MAX]")
    if sex := args.get("sex"):
        terms.append(f"AREA[Sex]({sex} OR ALL)")
    if terms:
        params["query.term"] = " AND ".join(terms)
    if statuses := args.get("status"):
        params["filter.overallStatus"] = "|".join(statuses)
    params |= {"fields": FIELDS, "countTotal": "true", "pageToken": args.get("page_token") or ""}
    params["pageSize"] = str(max(1, min(args.get("page_size") or PAGE_SIZE, LARGEST_PAGE)))
    return {name: value for name, value in params.items() if value}


def years(age: str) -> float | None:
    """ "6 Months" -> 0.5. None where the registry gives no age, or one that cannot be read."""
    number, _, unit = age.partition(" ")
    scale = YEARS.get(unit.strip().lower().rstrip("s"))
    return round(float(number) * scale, 3) if scale and number.replace(".", "", 1).isdigit() else None
