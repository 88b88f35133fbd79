"""A turn of the revenue-cycle agent: what a conversation knows, and what its nodes use."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from docgemma.ehr.base import Chart
from docgemma.knowledge.base import Knowledge
from docgemma.rcm.chart import chart_document
from docgemma.rcm.evidence import Reading, Shelf
from docgemma.rcm.kept import KeptStore
from docgemma.rcm.models import Guarded
from docgemma.rcm.records import Claim, Contradiction, Document, Intent, Judged, Person, Policy, Risk
from docgemma.rcm.scope import Wanted
from docgemma.reading.reader import Reader
from docgemma.settings import Settings

if TYPE_CHECKING:
    from docgemma.rcm.ledger import Ledger

AFTER = {  # what is left to do once a clarification is answered
    "patient": ["identify", "chart", "policy", "gate"], "payer": ["policy", "gate"], "side": ["policy"],
    "service": ["policy", "gate"],
}  # fmt: skip
WIDTHS = 3  # what the criteria are judged on: the documents; the chart too; what the conversation read before too


class RcmState(TypedDict, total=False):
    """What a conversation knows; plain data, so that a checkpoint holds it. Pages lie in files beside it."""

    message: str  # as it came in
    input_query: str  # the question of this turn; of the one that is resumed where a clarification is answered
    query_intent: Intent
    refused: bool
    documents_processed: list[str]
    extractions: list[Claim]
    pending_user_input: bool
    clarification_needed: str
    options: list[dict[str, Any]]  # of the clarification: {"id", "label", ...}
    asked_for: str  # what the clarification asks for: patient, side, payer
    iteration_count: int
    confidence_score: float
    confidence: dict[str, Any]
    final_response: str
    error: str | None
    routing_decision: str  # pass, missing, ambiguous, partial, out_of_scope
    is_partial: bool
    insufficient_documentation_flags: list[str]
    tool_trace: list[dict[str, Any]]
    clinical_context: dict[str, Any]  # across turns: patient, documents (digests), payer
    turn: str
    todo: list[str]
    told: str  # what the last step did, in words
    files: list[Reading]
    failed_pages: list[dict[str, Any]]
    want: Wanted
    given_patient: Person | None
    patient: Person | None
    papers: list[Document]  # made by the turn: interactions
    notes: list[str]  # told with the answer
    criteria: list[Judged]
    policy: Policy | None
    payer: str
    contradictions: list[Contradiction]
    risk: Risk | None
    missing: list[str]
    grave: list[str]
    open_checks: list[str]
    as_of: str  # of a kept chart; "" of a live one
    ledger_ids: list[int]
    why_escalate: list[str]
    path: list[str]


@dataclass
class Surroundings:
    """What the nodes use."""

    settings: Settings
    llm: Guarded
    store: KeptStore
    knowledge: Knowledge
    reader: Reader
    ledger: "Ledger"
    shelf: Shelf
    thread: str
    charts: dict[str, Chart | None] = field(default_factory=dict)

    def chart(self, person: Person | None) -> Chart | None:
        """The patient's chart, read once a turn; None where there is none."""
        if not person or not person["id"]:
            return None
        if person["id"] not in self.charts:
            self.charts[person["id"]] = self.store.chart(person["id"])
        return self.charts[person["id"]]


def asking(what: str, question: str, options: Sequence[dict[str, Any]]) -> RcmState:
    return {"routing_decision": "ambiguous", "asked_for": what, "clarification_needed": question,
            "options": list(options), "told": f"asks for the {what}", "todo": AFTER.get(what, [])}  # fmt: skip


def documents_of(state: RcmState, around: Surroundings, everything: bool = False) -> list[Document]:
    """What the criteria are judged on, wider with each review; everything that a claim may quote."""
    width = WIDTHS if everything else state["iteration_count"]
    found = around.shelf.documents(state["documents_processed"])
    chart = around.chart(state["patient"])
    if chart and (width > 0 or not found):
        found = [*found, chart_document(chart)]
    if width > 1:
        earlier = (state.get("clinical_context") or {}).get("documents", [])
        found += around.shelf.documents([one for one in earlier if one not in state["documents_processed"]])
    return [*found, *state["papers"]] if everything else found
