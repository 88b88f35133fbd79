"""The typed state that flows through the graphs, and the records it is made of. Data only."""

from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

RESET = None  # a node returns RESET for an accumulating key to empty it


def accumulate(old: list[Any] | None, new: list[Any] | None) -> list[Any]:
    """Append, as `operator.add` does, but let a new turn of the same thread begin empty: `RESET`, or a list that begins
    with it."""
    if new is RESET or (new and new[0] is RESET):
        return list(new[1:]) if new else []
    return [*(old or []), *new]


class PatientRef(TypedDict):
    """A patient of the store whom a request names. `search`: what to look for, "" where an id was given."""

    id: str
    name: str
    label: str
    sex: str
    said: str
    search: str
    exact: bool  # False: the record spells the name differently


class OrderRef(TypedDict):
    """One ordered drug: as said, the dictionary's name, and its details as said ("" where nothing is)."""

    said: str
    drug: str
    how: str  # named, short, near, group, unknown
    dose: str
    route: str
    frequency: str
    notes: str


class Request(TypedDict):
    """What one message asks for, as `docgemma.reading` understood it."""

    asks: list[str]  # of reading.labels.ASKS
    meant: str  # of a write: ordered, asked, refused, unsure; "" where none is mentioned
    patients: list[PatientRef]
    unclear: list[str]  # names and ids that nobody, or more than one, has
    drugs: list[dict[str, Any]]  # {"said", "name", "how", "members", "taken", "details"}
    orders: list[OrderRef]
    allergies: list[dict[str, str]]  # {"substance", "reaction", "severity"}
    notes: list[dict[str, str]]  # {"note_type", "note_text"}
    corrects: bool  # the message before, whose request it completes
    details: dict[str, str]  # of an order or allergy that the message does not name: {"dose", "frequency", ...}
    measures: list[str]  # what is asked of a chart or label, in the clinician's words
    conditions: list[str]  # for trials
    status: str
    query: str
    trials: list[str]  # NCT ids
    studies: NotRequired[list[str]]  # that are named, stored or not: "DAPA-HF"
    said: str
    telling: list[str]  # words beside names and drugs that an entry of a chart may have
    owners: dict[str, list[list[str]]]  # ask -> ids of the patients of each entry, where several are named


class Option(TypedDict):
    """One choice of a clarification. `id` is what is stored, `label` what is shown."""

    id: str
    label: str


class ToolResult(TypedDict):
    """One executed call. `result` is the tool's payload, `formatted_result` what models and clinicians read."""

    tool_name: str
    tool_label: str
    args: dict[str, Any]
    result: dict[str, Any]
    formatted_result: str
    error: Optional[str]  # clinician-friendly text from an error template; never raw
    error_type: Optional[str]  # a value of errors.ErrorType
    details: dict[str, Any]  # of the error: missing_fields, suggestions, options, entity
    empty: bool  # succeeded, and found nothing
    source: Optional[str]  # where the facts come from, "openFDA snapshot"
    as_of: Optional[str]  # ISO date of those facts
    links: list[dict[str, str]]  # {"title", "url", "id"} to show as sources
    seconds: float
    retries: int
    writes: bool  # the tool changes the record
    no_answer: NotRequired[str]  # of a failed call: `Tool.no_answer`


class Clarification(TypedDict):
    """A question to the clinician, and where the work goes on once it is answered."""

    kind: Literal["patient", "drug", "missing"]
    question: str
    options: list[Option]
    tool: str
    args: dict[str, Any]
    missing: list[str]
    query: NotRequired[str]  # the question that is being worked on
    entity: NotRequired[str]  # what was unclear, as it was written
    turn: NotRequired[dict[str, Any]]  # what was worked on, where another question was answered in between


class PendingWrite(TypedDict):
    """What a person decides about. `original`: arguments that were written otherwise, as they were written."""

    name: str
    label: str
    patient: dict[str, str]  # {"id", "name", "birth_date"}
    args: dict[str, Any]
    original: dict[str, str]
    findings: list[str]
    ranked: NotRequired[list[dict[str, str]]]  # "rank": contraindicated to minor, or unchecked; "text"; "basis"


class Held(TypedDict):
    """An entry that waits while another question is answered."""

    tool: str
    args: dict[str, Any]
    original: dict[str, str]
    turn_id: str
    message: str
    user_query: str
    request: Request
    results: list["ToolResult"]
    touched: NotRequired[int]  # place in the request of the entry behind the card that was changed last; -1: taken out


class Exchange(TypedDict):
    """One earlier exchange, as history keeps it."""

    user: str
    assistant: str
    tools: list[dict[str, Any]]  # {"label", "args", "brief"}


class ActivePatient(TypedDict):
    id: str
    name: str


class Subtask(TypedDict):
    """One part of a request, in v1 and v2. `query`: what to look up, in words; "" where the plan knows."""

    tool: str
    query: str


class Step(TypedDict):
    """One line of the timeline a clinician sees."""

    node: str
    label: str
    detail: str
    seconds: float
    calls: NotRequired[int]  # generations of the model; 0: code alone


class ImageRef(TypedDict):
    """An attached image, kept as a file: pixels never enter a checkpoint."""

    path: str


class AgentState(TypedDict, total=False):
    graph: str  # the graph that the conversation runs
    # input
    turn_id: str
    message: str  # what was typed; `user_query` is the question being worked on
    user_query: str
    image: Optional[ImageRef]
    history: list[Exchange]
    active_patient: Optional[ActivePatient]  # whom "his" and "her" mean; may change within a turn
    turn_patient: Optional[ActivePatient]  # the same as the turn began, so that prompts only ever grow
    request: Request  # of this turn; of the turn before until the next message is read
    image_findings: Optional[dict[str, Any]]
    # intent
    intent: Literal["DIRECT", "TOOL_NEEDED"]
    task_summary: str
    suggested_tool: Optional[str]
    suggested_needs: Optional[str]  # `Tool.needs` of the suggested tool
    # tool loop
    current_tool: Optional[str]
    current_args: Optional[dict[str, Any]]
    proposed_none: bool  # stage 1 said that no more tools are needed
    tool_results: Annotated[list[ToolResult], accumulate]
    step_count: int  # distinct tool calls completed; a retry is not a step
    retry_count: int  # retries of the current tool
    total_retries: int
    # v1 and v2
    route: Optional[Literal["direct", "complex", "lookup", "reasoning", "multi_step"]]
    patient_summary: str
    subtasks: list[Subtask]
    subtask: int  # which of them is worked on
    iterations: int  # of the current one: how often it was planned or its arguments were corrected
    fault: str  # what is wrong with the call that was planned
    thoughts: list[str]  # what the model reasoned; no evidence
    # result classification
    last_result_classification: Optional[str]
    last_result_summary: Optional[str]
    quality: Annotated[list[str], accumulate]
    # errors and people
    next_node: Optional[str]  # the router's or the error handler's decision
    retry_strategy: Optional[str]
    error_messages: Annotated[list[str], accumulate]
    clarification: Optional[Clarification]
    put_off: Optional[Clarification]  # a question about an entry that is asked again below this turn's answer
    held: list[Held]  # cards that are shown again, the first first, when this turn's question is answered
    reopened: Optional[Held]  # the card that is shown below this turn's answer
    resumed: bool  # this turn answers a clarification; nothing is redone
    # output
    final_response: Optional[str]
    lead: Optional[str]  # the conclusion, the first line of the answer
    groups: list[dict[str, Any]]  # the answer in parts: `rules.layout.Answer.groups`
    unanswered: list[dict[str, str]]  # {"ask", "reason"} of what the answer does not serve
    status: Literal["answered", "needs_clarification", "needs_approval", "refused"]
    grounding: dict[str, Any]
    sources: list[dict[str, Any]]  # of a direct answer; others come from the tool results
    # trace
    path: Annotated[list[str], accumulate]
    steps: Annotated[list[Step], accumulate]
    calls: Annotated[list[dict[str, Any]], accumulate]
