"""What the prescreen agent passes around: the patient's facts, searches, trials and candidates. Data only."""

from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict

TOOLS = ("search_trials", "get_trial_details", "consult_medical_expert")


class Facts(TypedDict):
    """What is known of the patient, in the words of the note. Empty where nothing is said."""

    age: int | None  # years
    sex: Literal["", "MALE", "FEMALE"]
    diagnoses: list[str]  # the main one first
    stage: str
    histology: str
    biomarkers: list[str]
    prior_lines: list[str]  # treatments already given
    comorbidities: list[str]
    findings: list[str]  # symptoms, signs and complications
    note: str  # without names, ids and addresses


class Study(TypedDict):
    """A trial as the registry gave it."""

    id: str  # the registry's; never composed
    title: str
    status: str
    phases: list[str]
    study_type: str
    conditions: list[str]
    keywords: list[str]
    interventions: list[str]
    min_age: float | None  # years
    max_age: float | None
    sex: str  # ALL, MALE, FEMALE, or "" where it is not given
    criteria: str  # eligibility text, "" until it was fetched
    url: str


class ToolCall(TypedDict):
    """A call that an orchestrator asks for. `why`: in one line; "" where it does not say."""

    tool: str
    args: dict[str, Any]
    why: str


class Search(TypedDict):
    """One executed tool call. `returned`: ids; `new`: those that no call before had returned."""

    tool: str
    args: dict[str, Any]
    returned: list[str]
    new: list[str]
    total: int | None  # as the registry counts
    next_token: str  # of the next page, "" where there is none
    why: str  # why this call was made, in one line
    answer: NotRequired[str]  # the expert's
    error: NotRequired[str]


class Criterion(TypedDict):
    """One judged criterion. `sentence`: the sentence of the note that decides it, "" where it is unknown."""

    text: str
    kind: Literal["inclusion", "exclusion"]
    verdict: Literal["met", "not_met", "unknown"]
    sentence: str


class Candidate(TypedDict):
    """One line of the shortlist, as the contract prints it."""

    nct_id: str
    title: str
    score: float
    reason: str
    status: str
    found_by: list[int]  # numbers of the searches, from 1
    criteria: list[Criterion]


@dataclass
class Evidence:
    """Everything that the calls of one run brought: trials by id, the calls in order, what they cost."""

    studies: dict[str, Study] = field(default_factory=dict)
    searches: list[Search] = field(default_factory=list)
    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TOOLS, 0))
    tokens: dict[str, int] = field(default_factory=lambda: {"prompt": 0, "completion": 0})
    cost: float = 0.0  # US dollars, of a model that is paid for
    partial: str = ""  # why the list may be incomplete, in one line
    answers: list[dict[str, Any]] = field(default_factory=list)  # the executor's, to the calls of the last turn
    memo: dict[str, Any] = field(default_factory=dict)  # what an orchestrator keeps for itself between its turns

    def found_by(self, trial: str) -> list[int]:
        """Numbers of the searches that returned it, from 1."""
        return [number for number, search in enumerate(self.searches, 1) if trial in search["returned"]]
