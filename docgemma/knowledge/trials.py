"""Clinical trials from ClinicalTrials.gov, API v2, and from its bulk files. Source: clinicaltrials.gov/data-api/api."""

from collections.abc import Sequence

from docgemma.http import Deadline
from docgemma.knowledge.base import Trial
from docgemma.knowledge.http import Fetched, Service, Wire, at
from docgemma.knowledge.label_text import plain
from docgemma.knowledge.search import statuses, words

PAGE_SIZE = 100
MAX_PAGES = 20
PAGE = "https://clinicaltrials.gov/study"
FIELDS = (
    "NCTId,BriefTitle,OverallStatus,BriefSummary,Condition,StudyType,Phase,InterventionName,"
    "LocationFacility,LocationCity,LocationState,LocationCountry"
)
PHASES = {"NA": "Not applicable", "EARLY_PHASE1": "Early Phase 1"}


class Intervention(Wire):
    name: str = ""


class Location(Wire):
    facility: str = ""
    city: str = ""
    state: str = ""
    country: str = ""


class Study(Wire):
    id: str = at("protocolSection.identificationModule.nctId")
    title: str = at("protocolSection.identificationModule.briefTitle", default="")
    status: str = at("protocolSection.statusModule.overallStatus", default="")
    updated: str = at("protocolSection.statusModule.lastUpdatePostDateStruct.date", default="")
    summary: str = at("protocolSection.descriptionModule.briefSummary", default="")
    conditions: tuple[str, ...] = at("protocolSection.conditionsModule.conditions", default=())
    keywords: tuple[str, ...] = at("protocolSection.conditionsModule.keywords", default=())
    study_type: str = at("protocolSection.designModule.studyType", default="")
    phases: tuple[str, ...] = at("protocolSection.designModule.phases", default=())
    interventions: tuple[Intervention, ...] = at("protocolSection.armsInterventionsModule.interventions", default=())
    locations: tuple[Location, ...] = at("protocolSection.contactsLocationsModule.locations", default=())
    data_version: str = at("derivedSection.miscInfoModule.versionHolder", default="")


class Studies(Wire):
    """A page of /studies; the last one has no token. Fields without a value are absent."""

    studies: list[Study]
    nextPageToken: str | None = None


def find_trials(
    service: Service, condition: str, status: str | None, limit: int, deadline: Deadline
) -> Fetched[list[Trial]]:
    """Trials of a condition, page after page up to `limit`; [] means that there are none.

    Raises:
        ToolError: `invalid_args` for a status the registry does not have or a condition without words; or an outage,
            also in the middle: part of an answer is not an answer.
    """
    params = {"query.cond": words(condition, "condition"), "fields": FIELDS, "pageSize": str(min(limit, PAGE_SIZE))}
    if wanted := statuses(status):
        params["filter.overallStatus"] = "|".join(wanted)
    found: dict[str, Trial] = {}
    for _ in range(MAX_PAGES):
        page = service.get("studies", params, Studies.model_validate, deadline)
        found |= {trial.id: trial for trial in map(parse, page.data.studies)}
        token = page.data.nextPageToken
        if len(found) >= limit or not token or token == params.get("pageToken"):
            break
        params = {**params, "pageToken": token}
    return Fetched(list(found.values())[:limit], page.as_of)


def parse(study: Study) -> Trial:
    places = (", ".join(filter(None, (p.facility, p.city, p.state, p.country))) for p in study.locations)
    return Trial(
        id=study.id,
        title=plain(study.title),
        status=study.status,
        phase=phase(study.phases, study.study_type),
        conditions=[plain(item) for item in study.conditions],
        interventions=[plain(item.name) for item in study.interventions if item.name],
        locations=[plain(place) for place in places if place],
        summary=plain(study.summary),
        url=f"{PAGE}/{study.id}",
    )


def phase(phases: Sequence[str], study_type: str) -> str:
    """ "Phase 2/Phase 3"; "Not applicable" where the registry says so; "Observational" where there can be none."""
    if not phases and study_type == "OBSERVATIONAL":
        return "Observational"
    return "/".join(PHASES.get(item, item.replace("PHASE", "Phase ")) for item in phases)
