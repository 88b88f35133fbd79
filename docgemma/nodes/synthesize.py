"""Node 7: the answer. Free text from the model, held to the evidence by code before anyone sees it."""

from collections.abc import Callable
from typing import Any

from langgraph.runtime import Runtime

from docgemma.errors import StoppedError
from docgemma.nodes.context import Context
from docgemma.rules.cut import complete
from docgemma.rules.fallback import answer_from_evidence, ensure_critical, unavailable_lines
from docgemma.rules.grounding import ground
from docgemma.rules.leak import without_instructions
from docgemma.rules.patient_context import by_patient, with_patient
from docgemma.rules.refusal import (
    NOTHING_RECORDED,
    any_rejected,
    refused_answer,
    unprepared_answer,
    without_entries,
)
from docgemma.state import AgentState, Turn

KEPT_TURNS = 8
MIN_WORDS = 3  # less than that says nothing; the evidence does
GENERAL_KNOWLEDGE = "(From the model's general medical knowledge; not checked against a source.)"


def synthesize(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    if question := state.get("clarification"):
        text = _question_text(question)
        update = {"final_response": text, "status": "needs_clarification", "grounding": _grounding(True, [])}
    elif refused := refused_answer(state):
        update = {"final_response": refused, "grounding": _grounding(True, [])}
    elif state.get("intent") == "DIRECT" and not state.get("tool_results"):
        update = _direct(state, runtime)
    else:
        update = _from_evidence(state, runtime)
    runtime.stream_writer({"type": "answer", "text": update["final_response"]})
    turn = Turn(user=state["message"], assistant=update["final_response"], tools=_briefs(state))
    return {**update, "history": [*state.get("history", []), turn][-KEPT_TURNS:]}


def _direct(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """General knowledge has no evidence to be held to, so it says where it comes from."""
    context = runtime.context
    if unprepared := unprepared_answer(state):
        return {"final_response": unprepared, "grounding": _grounding(True, []), "status": "refused"}
    images = state.get("image_findings") or {}
    if images.get("unread"):
        return {"final_response": images["formatted"], "grounding": _grounding(True, [])}
    if prepared := context.profile.direct(state):
        return {"final_response": prepared.text, "grounding": _grounding(True, []), "sources": prepared.sources}
    prompt = context.profile.synthesize(state)
    removed: list[str] = []
    before = [line for turn in state.get("history", []) for line in turn["assistant"].splitlines()]

    def keep(text: str) -> str:
        text, claimed = without_entries(without_instructions(text, prompt.system)[0], before)
        removed.extend(claimed)
        return text

    stream = SentenceStream(keep, _writer(runtime))
    done = context.llm.text(prompt, context.profile.synthesis, node="synthesize", on_token=stream)
    calls = [call.as_dict() for call in done.calls]
    written = stream.finish()
    notice = "" if images or not written else f"\n\n{GENERAL_KNOWLEDGE}"
    text = (written or answer_from_evidence(state)) + notice
    if removed:  # it said that something was recorded
        text = f"{NOTHING_RECORDED}\n{text}"
    return {"final_response": text, "grounding": _grounding(not removed, removed), "calls": calls}


def _from_evidence(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    context = runtime.context
    if charts := by_patient(state):
        text = "\n\n".join([charts, *unavailable_lines(state)])
        return {"final_response": text, "grounding": _grounding(True, [])}
    known, names = evidence(state), [tool.name for tool in context.toolbox]
    removed: list[str] = []

    prompt = context.profile.synthesize(state)

    def keep(text: str) -> str:
        text, leaked = without_instructions(text, prompt.system)
        checked = ground(complete(text, known), known, context.drugs, names)
        removed.extend([*leaked, *checked.removed])
        return checked.answer

    stream = SentenceStream(keep, _writer(runtime))
    done = context.llm.text(prompt, context.profile.synthesis, node="synthesize", on_token=stream)
    written = stream.finish()
    usable = len(written.split()) >= MIN_WORDS
    text = context.profile.mend(written, state) if usable else answer_from_evidence(state)
    text = ensure_critical(text, state, context.drugs)
    return {
        "final_response": with_patient(text or answer_from_evidence(state), state),
        "grounding": _grounding(not removed, removed),
        "calls": [call.as_dict() for call in done.calls],
    }


def evidence(state: AgentState) -> list[str]:
    """Everything of this turn that an answer may repeat."""
    images = state.get("image_findings") or {}
    texts = [result["formatted_result"] for result in state.get("tool_results", [])]
    texts += [str(value) for result in state.get("tool_results", []) for value in result["args"].values()]
    if not any_rejected(state):  # an entry of an earlier turn must not bear out one that was rejected now
        texts += [f"{turn['user']}\n{turn['assistant']}" for turn in state.get("history", [])]
    if patient := state.get("active_patient"):
        texts.append(f"{patient['name']} {patient['id']}")
    return [*texts, state["user_query"], *state.get("error_messages", []), images.get("formatted", "")]


class SentenceStream:
    """Holds streamed text back until a sentence is whole and checked, so that nothing unsupported is ever shown."""

    ENDS = (". ", "! ", "? ", "\n")

    def __init__(self, check: Callable[[str], str], sink: Callable[[str], Any]):
        self.check, self.sink, self.held, self.shown = check, sink, "", ""

    def __call__(self, piece: str) -> None:
        self.held += piece
        cut = max(self.held.rfind(end) + len(end) if end in self.held else 0 for end in self.ENDS)
        if cut > 40:  # a short head is more likely an abbreviation ("Dr. ") than a sentence
            head, self.held = self.held[:cut], self.held[cut:]
            self._show(head)

    def finish(self) -> str:
        if self.held.strip():
            self._show(self.held)
        self.held = ""
        return self.shown.strip()

    def _show(self, text: str) -> None:
        kept = self.check(text)
        if not kept:
            return
        joint = "\n" if text.endswith("\n") else " "
        self.shown += kept.strip() + joint
        self.sink(kept.strip() + joint)


def _question_text(question: dict[str, Any]) -> str:
    options = "\n".join(f"{number}. {item['label']}" for number, item in enumerate(question["options"], 1))
    listed = all(item["label"] in question["question"] for item in question["options"])
    return question["question"] if listed or not options else f"{question['question']}\n{options}"


def _writer(runtime: Runtime[Context]) -> Callable[[str], None]:
    def write(text: str) -> None:
        if runtime.context.stop():
            raise StoppedError("Stopped.", hint="Ask again, or ask something else.")
        runtime.stream_writer({"type": "token", "text": text})

    return write


def _grounding(supported: bool, removed: list[str]) -> dict[str, Any]:
    return {"supported": supported, "removed": removed}


def _briefs(state: AgentState) -> list[dict[str, Any]]:
    return [
        {"label": item["tool_label"], "args": item["args"], "brief": item["formatted_result"][:300]}
        for item in state.get("tool_results", [])
        if not item["error"]
    ]
