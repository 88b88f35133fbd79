"""The revenue-cycle agent over HTTP: its turns, the evidence ledger, and the golden set."""

import asyncio
import hashlib
import logging
import threading
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response

from docgemma.agent import Agent
from docgemma.api import docs
from docgemma.api.access import RCM, check_may_write, owns
from docgemma.api.models import Document, Results, Running, Verify, Written
from docgemma.api.problems import Problem
from docgemma.ehr.base import Chart
from docgemma.errors import ConfigError, ThreadStateError, UnknownThreadError, UsageError, kind_and_place
from docgemma.forget import image_folder
from docgemma.nodes.context import Actor
from docgemma.paths import data_file, kit, private_file
from docgemma.rcm.records import Claim, Identity
from docgemma.rcm.records import Document as Read
from docgemma.turns import between_steps

READ_ONLY = "Let a token that may write call this."
OnceKey = Annotated[  # the same key writes the same quote once
    str | None, Header(alias="Idempotency-Key", pattern="^[!-~]{1,255}$", description="It is written once.")
]
log = logging.getLogger("docgemma.api")


def ask(
    agent: Agent, question: str | None, thread: str, who: Actor, documents: list[Document] | None = None,
    patient: str | None = None, create: bool = False, **follow: Any,
) -> dict[str, Any]:  # fmt: skip
    """One turn: the JSON of `docgemma rcm ask`. Its documents stay with the conversation until that is forgotten.

    Args:
        question: or the answer to what was asked back; None takes up a turn that was cut off.
        create: begin the conversation, which must exist otherwise.

    Raises:
        UnknownThreadError, ThreadStateError: there is no such conversation, or nothing was cut off.
        DocGemmaError: as `graphs.rcm.run`; StoppedError between two of its steps.
    """
    from docgemma.graphs.rcm import build, parts_of, run

    if not create:
        stored = build().compile(checkpointer=agent.memory).get_state({"configurable": {"thread_id": thread}})
        if not (stored.values or stored.tasks):
            raise UnknownThreadError("")
        if question is None and not stored.tasks:
            raise ThreadStateError("No turn of this conversation was cut off.")
        question = question or stored.values.get("message")

    told = between_steps(lambda step: follow["on_event"]({"type": "step", **step}), follow["stop"])
    papers = [_kept(agent, thread, document) for document in documents or []]
    return run(question or "", pdf=papers, thread=thread, patient=patient, on_step=told, **parts_of(agent))


class Ledger:
    """The routes beside the conversations."""

    def __init__(self, agent: Agent):
        self.agent = agent
        self.running = threading.Lock()  # of an evaluation

    def add_to(self, routes: APIRouter) -> None:
        routes.post("/api/rcm/verify", **docs.told("rcm", "written", "verify"))(self.verify)
        routes.post("/eval/run", **docs.told("rcm", "running", code=202))(self.evaluate)
        routes.get("/eval/results", **docs.told("rcm", "results"))(self.results)

    async def verify(self, request: Request, given: Verify, key: OnceKey = None) -> Written:
        """Write a quote into the evidence ledger. Where its document is known here, a chart or one that was sent to the
        conversation `session_id`, the quote must stand in it. With an Idempotency-Key it is written once."""
        who = request.state.who
        check_may_write(who, READ_ONLY)
        session = given.session_id or f"verify.{who.name}"
        if session.startswith(f"{RCM}.") and not owns(who.name, session, RCM):
            raise UnknownThreadError("")
        key = hashlib.sha256(f"{who.name}\n{key}".encode()).hexdigest() if key else ""
        return await asyncio.to_thread(self._write, given, session, key)

    def _write(self, given: Verify, session: str, key: str) -> Written:
        from docgemma.rcm.ledger import open_ledger

        chart = self.agent.store.chart(given.patient_id)
        document = self._document(given, session, chart)
        if document and not _stands(given, document, chart):
            detail = "The quote does not stand in that document as it is given. Nothing was written."
            raise Problem(422, detail, "Quote it word for word, with its page.")
        row = given.model_dump() | {"session_id": session, "policy_id": given.policy_id or ""}
        try:
            number = open_ledger(self.agent.settings.db_location).write(row, key)
        except UsageError as error:  # names a column or a row, and nobody
            raise Problem(422, f"Nothing was written. {error}", "Correct the field, or send a new key.") from error
        trail = f"rcm_evidence_ledger#{number}"
        return Written(ledger_id=number, status="WRITTEN", audit_trail=trail, verified=bool(document))

    def _document(self, given: Verify, session: str, chart: Chart | None) -> Read | None:
        """The document that the quote is said to be of, where it is here."""
        for path in _folder(self.agent, session).glob("*"):
            if path.name == given.source_document:
                from docgemma.rcm.pdf import read_pdf

                return read_pdf(path)
        if chart:
            from docgemma.rcm.chart import chart_document

            document = chart_document(chart)
            return document if document["name"] == given.source_document else None
        return None

    async def evaluate(self, request: Request, response: Response) -> Running:
        """Begin to run the golden set in the background; its results come at /eval/results."""
        check_may_write(request.state.who, READ_ONLY)
        cases = kit("rcm", "golden").load_rcm_cases(_golden())
        if not self.running.acquire(blocking=False):
            raise Problem(409, "The golden set is being run already.", "GET /eval/results says when it is done.")
        threading.Thread(target=self._evaluate, args=(cases,), name="docgemma-eval", daemon=True).start()
        response.headers["Location"] = "/eval/results"
        return Running(status="running", cases=len(cases))

    def _evaluate(self, cases: list[Any]) -> None:
        golden, settings = kit("rcm", "golden"), self.agent.settings
        try:
            golden.summarize_rcm(golden.run_rcm_cases(cases, settings, self.agent.llm), settings)
        except Exception as error:  # nobody waits for it: the log says that it failed, without its text
            log.error("the golden set could not be run: %s", kind_and_place(error))
        finally:
            self.running.release()

    async def results(self) -> Results:
        """Whether the golden set is being run, and what its last run gave."""
        _golden()
        found = await asyncio.to_thread(kit("rcm", "golden").kept_runs, self.agent.settings)
        return Results(running=self.running.locked(), results=found[-1] if found else None)


def _golden() -> Path:
    try:
        return data_file("golden", "rcm.yaml")
    except ConfigError as error:
        raise Problem(404, "There is no golden set here.", "Install the data folder of the repository.") from error


def _stands(given: Verify, document: Read, chart: Chart | None) -> bool:
    """Whether the auditor finds the quote there; where no page is given, on any."""
    from docgemma.rcm.audit import verify

    who = chart.patient if chart else None
    asked = Identity(name=who.name, birth_date=who.birth_date) if who else None
    claims = [
        Claim(
            claim=given.verbatim_quote, quote=given.verbatim_quote, document=document["name"], page=page["number"],
            section=section["title"], verified=False, kind="document",
        )
        for page in document["pages"]
        if given.page_number in (None, page["number"])
        for section in page["sections"]
    ]  # fmt: skip
    return any(verify(claim, [document], asked=asked)["verified"] for claim in claims)


def _folder(agent: Agent, thread: str) -> Path:
    return image_folder(agent.settings, thread) / "documents"


def _kept(agent: Agent, thread: str, document: Document) -> Path:
    """Its file, which is forgotten with the conversation."""
    path = _folder(agent, thread) / document.name
    private_file(path).write_bytes(document.data)
    return path
