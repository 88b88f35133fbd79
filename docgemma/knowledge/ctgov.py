"""Clinical trials from ClinicalTrials.gov, API v2. Source: clinicaltrials.gov/data-api/api."""

import re

from pydantic import Field

from docgemma.errors import ErrorType, ToolError
from docgemma.knowledge import search
from docgemma.knowledge.base import Trial
from docgemma.knowledge.http import Deadline, Fetched, Http, Service
from docgemma.knowledge.label_text import plain

from docgemma.knowledge.wire import Wire

PAGE_SIZE = 100
MAX_PAGES = 20
PAGE = "https://clinicaltrials.gov/study"
FIELDS = (
    "NCTId,BriefTitle,OverallStatus,BriefSummary,Condition,StudyType,Phase,InterventionName,"
    "LocationFacility,LocationCity,LocationState,LocationCountry"
)


class Identification(Wire):
    nctId: str
    briefTitle: str = ""


class Status(Wire):
    overallStatus: str = ""


class Description(Wire):
    briefSummary: str = ""


class Conditions(Wire):
    conditions: tuple[str, ...] = ()


class Design(Wire):
    studyType: str = ""
    phases: tuple[str, ...] = ()


class Intervention(Wire):
    name: str = ""


class Interventions(Wire):
    interventions: tuple[Intervention, ...] = ()


class Location(Wire):
    facility: str = ""
    city: str = ""
    state: str = ""
    country: str = ""


class Locations(Wire):
    locations: tuple[Location, ...] = ()


class Protocol(Wire):
    identificationModule: Identification
    statusModule: Status = Field(default_factory=Status)
    descriptionModule: Description = Field(default_factory=Description)
    conditionsModule: Conditions = Field(default_factory=Conditions)
    designModule: Design = Field(default_factory=Design)
    armsInterventionsModule: Interventions = Field(default_factory=Interventions)
    contactsLocationsModule: Locations = Field(default_factory=Locations)


class Study(Wire):
    protocolSection: Protocol


class Studies(Wire):
    """A page of /studies; the last one has no token. Fields without a value are absent."""

    studies: list[Study]
    nextPageToken: str | None = None


def find_trials(
    http: Http, service: Service, condition: str, status: str | None, limit: int, deadline: Deadline
) -> Fetched[list[Trial]]:
    """Trials of a condition, page after page up to `limit`; [] means that there are none.

    Raises:
        ToolError: `invalid_args` for a status the registry does not have or a condition without words; or an outage,
            also in the middle: part of an answer is not an answer.
    """
    params = {"query.cond": words(condition), "fields": FIELDS, "pageSize": str(min(limit, PAGE_SIZE))}
    if wanted := statuses(status):
        params["filter.overallStatus"] = "|".join(wanted)
    found: dict[str, Trial] = {}
    for _ in range(MAX_PAGES):
        page = http.get(service, "studies", params, Studies.model_validate, deadline)
        found |= {trial.id: trial for trial in map(parse, page.data.studies)}
        token = page.data.nextPageToken
        if len(found) >= limit or not token or token == params.get("pageToken"):
            break
        params = {**params, "pageToken": token}
    return Fetched(list(found.values())[:limit], page.as_of)


def statuses(said: str | None) -> tuple[str, ...]:
    """The registry's codes for a status in anyone's words; () for any.

    Raises:
        ToolError: `invalid_args`, with the words that can be used as `suggestions`.
    """
    try:
        return search.statuses(said)
    except ToolError as error:
        allowed = sorted(search.STATUSES)
        raise ToolError(
            ErrorType.INVALID_ARGS,
            "ClinicalTrials.gov has no such trial status.",
            hint=f"Use one of: {', '.join(allowed)}.",
            missing_fields=["status"],
            suggestions=allowed,
        ) from error


def words(condition: str) -> str:
    """A condition's words alone; the registry refuses brackets and commas, and reads capital AND, OR, NOT as commands.

    Raises:
        ToolError: `invalid_args`, nothing is left.
    """
    found = [word.strip("-'") for word in re.findall(r"[\w'-]+", condition)]
    found = [word.lower() if word in ("AND", "OR", "NOT") else word for word in found if word]
    if not found:
        raise ToolError(ErrorType.INVALID_ARGS, "The condition has no words.", missing_fields=["condition"])
    return " ".join(found)


def parse(study: Study) -> Trial:
    protocol = study.protocolSection
    design = protocol.designModule
    return Trial(
        id=protocol.identificationModule.nctId,
        title=plain(protocol.identificationModule.briefTitle),
        status=protocol.statusModule.overallStatus,
        phase=phase(design),
        conditions=[plain(item) for item in protocol.conditionsModule.conditions],
        interventions=[plain(item.name) for item in protocol.armsInterventionsModule.interventions if item.name],
        locations=[place for item in protocol.contactsLocationsModule.locations if (place := location(item))],
        summary=plain(protocol.descriptionModule.briefSummary),
        url=f"{PAGE}/{protocol.identificationModule.nctId}",
    )


def phase(design: Design) -> str:
    """ "Phase 2/Phase 3"; "Not applicable" where the registry says so; "Observational" where there can be none."""
    names = {"NA": "Not applicable", "EARLY_PHASE1": "Early Phase 1"}
    if not design.phases and design.studyType == "OBSERVATIONAL":
        return "Observational"
    return "/".join(names.get(item, item.replace("PHASE", "Phase ")) for item in design.phases)


def location(item: Location) -> str:
    return plain(", ".join(part for part in (item.facility, item.city, item.state, item.country) if part))
