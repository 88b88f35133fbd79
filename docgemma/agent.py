"""Agent: one graph, one model, one toolbox, one memory. Everything that talks to a user talks through it."""

import sqlite3
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast

from langgraph.types import Command, StateSnapshot

from docgemma.ehr.open import open_store
from docgemma.errors import ThreadStateError, UnknownPatientError, UnknownThreadError, UsageError
from docgemma.forget import forget_all, forget_before, forget_expired, forget_thread, image_folder
from docgemma.graphs import DEFAULT, load_graph
from docgemma.images import keep_image
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.knowledge.sources import open_knowledge
from docgemma.llm import load_llm
from docgemma.llm.base import LLM
from docgemma.memory import broken, last_checkpoints, open_memory
from docgemma.nodes.about_card import HOLD, about_card
from docgemma.nodes.context import CLINICIAN, Actor, Context, never_stop
from docgemma.nodes.write_findings import alternatives
from docgemma.paths import data_file
from docgemma.quiet import quiet
from docgemma.reading.reader import load_reader
from docgemma.report import report
from docgemma.rules.override import red
from docgemma.settings import Settings, read_settings
from docgemma.state import RESET, AgentState, PendingWrite
from docgemma.text.characters import clean_question
from docgemma.tools import ToolContext, toolbox

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

OnEvent = Callable[[dict[str, Any]], Any]
Decision = Literal["approve", "reject", "edit", "amend"]
RECURSION_LIMIT = 120  # nodes in a turn; the rules end it far earlier


class Options(TypedDict, total=False):
    """What any turn may be given."""

    actor: Actor  # on whose behalf; the record names them where they write
    on_event: OnEvent | None  # gets {"type": "start" | "step" | "token" | "answer", ...} as the turn goes on
    stop: Callable[[], bool]  # asked often; True ends the turn, and the conversation stays usable


class Agent:
    """A clinical agent. Safe to use from several threads; turns of one conversation run one after the other.

    Args:
        model: overrides `settings.model`.
        llm: a loaded model, which whoever loaded it closes, instead of loading one.
        graph: of new conversations, and of new questions in an earlier one; None takes v3, and the earlier one's own.
        on_progress: called with one line for each slow step of start-up.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        model: str | None = None,
        llm: LLM | None = None,
        graph: str | None = None,
        on_progress: Callable[[str], Any] | None = None,
    ):
        self.settings = settings or read_settings()
        self.graph_name, self._given_graph = graph or DEFAULT, graph
        load_graph(self.graph_name)  # there is such a graph
        self.memory = open_memory(self.settings.db_location)
        forget_expired(self.settings, self.memory)
        self.store = open_store(self.settings)
        self.knowledge = open_knowledge(self.settings)
        self.drugs = load_drug_names()
        self.reader = load_reader(data_file("edge", "reader.npz"))
        self.toolbox = toolbox(self.settings)
        self.llm = llm or load_llm(model, self.settings, on_progress=on_progress)
        self._own_llm = llm is None
        self._app = cache(lambda name: load_graph(name).compile(checkpointer=self.memory))
        self._locks: weakref.WeakValueDictionary[str, threading.RLock] = weakref.WeakValueDictionary()
        self._guard = threading.Lock()

    def ask(
        self,
        question: str,
        *,
        thread: str | None = None,
        image: str | Path | None = None,
        patient: str | None = None,
        create: bool = False,
        **options: Unpack[Options],
    ) -> dict[str, Any]:
        """One turn: the contract's JSON object.

        Args:
            thread: a stored conversation to continue; None starts one.
            create: start the conversation under the given id if there is none yet.
            image: a PNG, JPEG or DICOM file.
            patient: id of the patient that the question is about.

        Raises:
            UsageError: the question, thread, patient or image cannot be used; the line says why.
            StoreError, ModelError: what failed, and what to do.
        """
        message = clean_question(question)
        thread, create = (thread, create) if thread else (uuid.uuid4().hex[:12], True)
        with self._lock(thread):  # what is checked must still hold when the turn begins
            if not create:
                self._check_known(thread)
            stored = self._stored(thread)  # what waits there only its own graph can go on from
            graph = None if stored.interrupts or stored.values.get("clarification") else self._given_graph
            gone = ""
            if pending := _waiting(stored)[0]:
                answer, told = self._about_card(message, pending, thread, options)
                if answer:
                    return answer
                gone = told or self._stored(thread).values.get("final_response") or ""
            if self.pending(thread):  # the next one, behind what was rejected
                self._run(Command(resume=HOLD), thread, Options({**options, "on_event": None}))
            turn: dict[str, Any] = {
                "graph": graph or self._graph(thread), "message": message, "turn_id": uuid.uuid4().hex,
                "image": None if image is None else keep_image(image, image_folder(self.settings, thread)),
                "path": RESET, "steps": RESET, "calls": RESET, "sources": [], "resumed": False, "next_node": None,
            }  # fmt: skip
            if patient is not None:
                turn["active_patient"] = self._known_patient(patient)
            done = self._run(turn, thread, options)
            return {**done, "answer": "{}\n\n{}".format(gone.partition("\n")[0], done["answer"])} if gone else done

    def _about_card(
        self, message: str, pending: dict[str, Any], thread: str, options: Options
    ) -> tuple[dict[str, Any] | None, str]:
        """The report, where words correct or reject what waits; None where they are a question of their own; and what
        is said above the answer to that."""
        state, quietly = cast(AgentState, self._stored(thread).values), Options({**options, "on_event": None})
        *first, last = (outcome := about_card(message, state, pending, self._context(thread, options))).commands
        for command in first:
            self._run(command, thread, quietly)
        done = self._run(last, thread, quietly if outcome.own else options)
        done = {**done, "answer": f"{outcome.told}\n\n{done['answer']}"} if outcome.told else done
        return None if outcome.own else done, outcome.told

    def decide(
        self, thread: str, decision: Decision, args: dict[str, Any] | None = None, reason: str = "",
        **options: Unpack[Options],
    ) -> dict[str, Any]:  # fmt: skip
        """Approve, reject or edit the write that waits in a conversation.

        Args:
            decision: "amend" changes the entry as "edit" does, and always shows it again before it is written.
            reason: why it is approved against a contraindicated or major finding; record and report keep it.

        Raises:
            UsageError: nothing waits there, or the edit names an unknown field.
        """
        with self._lock(thread):
            self._check_known(thread)
            pending = self.pending(thread)
            if not pending:
                stored = self._stored(thread)
                if stored.tasks and decision == "approve":  # approved before a crash: what it led to is said
                    return self._run(None, thread, options)
                done = any(result["writes"] and not result["error"] for result in stored.values.get("tool_results", []))
                also = ": its entry is recorded" if done else ""
                raise ThreadStateError(f"Nothing waits for a decision in conversation {thread}{also}.")
            fields = self.toolbox[pending["name"]].args.model_fields
            unknown = set(args or {}) - set(fields)
            if unknown or (decision in ("edit", "amend") and not args):
                hint = f"Fields: {', '.join(fields)}."
                raise UsageError(f"Cannot edit {', '.join(sorted(unknown)) or 'nothing'}.", hint=hint)
            given = {"decision": decision, "args": args or {}, "reason": reason}
            return self._run(Command(resume=given), thread, options)

    def proceed(self, thread: str, **options: Unpack[Options]) -> dict[str, Any]:
        """Take up a turn that a crash or Ctrl-C cut off; a finished one is reported as it stands."""
        with self._lock(thread):
            self._check_known(thread)
            # not `next`: it leaves out a node whose result was kept just before the crash
            if not self._stored(thread).tasks or self.pending(thread):
                return self._report(thread, 0.0)
            return self._run(None, thread, options)

    def alternatives(self, pending: dict[str, Any]) -> list[str]:
        """Drugs of the same class as a waiting order's that raise neither a contraindicated nor a major finding."""
        return alternatives(pending["args"], self._context("", {})) if red(pending.get("ranked") or []) else []

    def pending(self, thread: str) -> dict[str, Any] | None:
        """The write that waits for a decision in this conversation, if one does."""
        return _waiting(self._stored(thread))[0]

    def threads(self, prefix: str, limit: int = 20) -> list[dict[str, str]]:
        """The conversations whose id begins so, the newest first: `thread`, and `question`, what was last asked."""
        with self._memory_errors():
            found = last_checkpoints(self.memory, prefix, limit)
            return [{"thread": thread, "question": self._stored(thread).values.get("message", "")} for thread in found]

    def forget(self, thread: str | None = None, *, before: datetime | None = None, prefix: str = "") -> int:
        """Forget one conversation, those not continued since `before`, or all; approved record entries stay.

        Args:
            before: a time with its zone; then only those whose id begins with `prefix`.

        Returns:
            How many.
        """
        if before:
            return forget_before(self.settings, self.memory, before, prefix)
        if thread is None:
            return forget_all(self.settings, self.memory)
        with self._lock(thread):
            forget_thread(self.settings, self.memory, thread)
        return 1

    def conversation(self, thread: str) -> dict[str, Any] | None:
        """What is stored of it: `turns`, the last `message`, `patient` (active), `unfinished`; None if nothing is."""
        stored = self._stored(thread)
        if not stored.values:
            return None
        return {
            "turns": stored.values.get("history", []),
            "message": stored.values["message"],
            "patient": stored.values.get("active_patient"),
            "unfinished": bool(stored.tasks) and not stored.interrupts,
        }

    def close(self) -> None:
        """Close what this agent opened."""
        if self._own_llm:
            self.llm.close()
        self.store.close()
        self.knowledge.close()
        self.memory.conn.close()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def tool_context(self) -> ToolContext:
        """To call a tool by hand: `agent.toolbox.call(name, args, agent.tool_context())`. Writes are refused."""
        return self._context("", {}).tool_context({})

    def _context(self, thread: str, options: Options) -> Context:
        return Context(
            llm=self.llm, toolbox=self.toolbox, store=self.store, knowledge=self.knowledge, drugs=self.drugs,
            reader=self.reader, settings=self.settings, thread=thread, actor=options.get("actor", CLINICIAN),
            stop=options.get("stop", never_stop),
        )  # fmt: skip

    def _run(self, given: Any, thread: str, options: Options) -> dict[str, Any]:
        """One run of the graph; the caller holds the conversation's lock."""
        start, on_event = time.perf_counter(), options.get("on_event") or (lambda event: None)
        with quiet(), self._memory_errors():
            graph = given["graph"] if isinstance(given, dict) else self._graph(thread)
            told: Iterator[Any] = self._app(graph).stream(
                given, _config(thread), context=self._context(thread, options), stream_mode=["updates", "custom"],
                durability="sync",
            )  # fmt: skip
            for mode, event in told:
                if mode == "custom":
                    on_event(event)
                elif steps := [update["steps"][-1] for update in event.values() if "steps" in (update or ())]:
                    on_event({"type": "step", **steps[0]})
        return self._report(thread, time.perf_counter() - start)

    def _report(self, thread: str, seconds: float) -> dict[str, Any]:
        stored = self._stored(thread)
        pending, beside = _waiting(stored)
        return report(
            cast(AgentState, stored.values), thread=thread, graph=self._graph(thread), model=self.llm.name,
            pending=cast(PendingWrite | None, pending), seconds=seconds, beside=beside,
        )  # fmt: skip

    def _stored(self, thread: str) -> StateSnapshot:
        return self._app(self._graph(thread)).get_state(_config(thread))

    def _graph(self, thread: str) -> str:
        """The graph that a conversation runs."""
        found = self.memory.get_tuple(_config(thread))
        values: dict[str, Any] = found.checkpoint["channel_values"] if found else {"graph": self.graph_name}
        return str({**values, **values.get("__start__", {})}.get("graph", DEFAULT))  # __start__: of a turn just begun

    @contextmanager
    def _memory_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise broken(self.settings.db_location, error) from error

    def _lock(self, thread: str) -> threading.RLock:
        with self._guard:  # a lock lives as long as somebody holds it or waits for it
            return self._locks.setdefault(thread, threading.RLock())

    def _check_known(self, thread: str) -> None:
        with self._memory_errors():
            found = self.memory.get_tuple(_config(thread))
        if found is None:
            hint = "Leave out --thread to start one; its id is in the answer."
            raise UnknownThreadError(f"There is no conversation {thread!r}.", hint=hint)

    def _known_patient(self, patient_id: str) -> dict[str, str]:
        patient = self.store.patient(patient_id.strip().lower()) or self.store.patient(patient_id.strip())
        if patient is None:
            raise UnknownPatientError(
                f"There is no patient with the id {patient_id!r}.", hint="Look one up with: docgemma ehr search NAME"
            )
        return {"id": patient.id, "name": patient.name}


def _config(thread: str) -> "RunnableConfig":
    return {"configurable": {"thread_id": thread}, "recursion_limit": RECURSION_LIMIT}


def _waiting(stored: StateSnapshot) -> tuple[dict[str, Any] | None, str]:
    """The write that waits, if one does, and the answer to what was asked besides it."""
    if not stored.interrupts:
        return None, ""
    card = dict(stored.interrupts[0].value)
    return card, card.pop("beside", "")
