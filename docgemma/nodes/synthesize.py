"""Node 7: the answer. Code composes it from the findings; a language model writes prose, held to the same findings."""

from collections.abc import Callable
from typing import Any

from langgraph.runtime import Runtime

from docgemma.errors import StoppedError
from docgemma.llm.base import Prompt
from docgemma.nodes.context import Context
from docgemma.nodes.medicine_labels import medicine_effects, warnings_of_taken
from docgemma.nodes.options import options_checked
from docgemma.nodes.order_checks import order_checks
from docgemma.nodes.write_card import as_card
from docgemma.nodes.write_findings import BOXED, judge, maxima
from docgemma.prompts import answer_prompt, generation
from docgemma.reading.labels import TOPICS
from docgemma.rules import known, refusal
from docgemma.rules.alarms import URGENT, alarms_told
from docgemma.rules.answer import compose
from docgemma.rules.direct import direct_reply
from docgemma.rules.grounding import ground, without_instructions
from docgemma.rules.layout import Answer, Fact, number, unique
from docgemma.rules.lost_warnings import must_say
from docgemma.rules.order_check import MODERATE, shown
from docgemma.rules.typed import entries_behind
from docgemma.rules.unanswered import JUDGED, NO_WORDS
from docgemma.rules.waiting import entered_before
from docgemma.state import AgentState, Clarification, Exchange, Request
from docgemma.text.quoted import quotations, shortened

KEPT_TURNS = 8
ENTRIES = {"substance": "of the allergy to", "medication_name": "for the order of"}  # what an entry is called by
TAKEN = "What labels of the active medicines warn of"
MIN_WORDS = 3  # less than that says nothing; the evidence does
GENERAL_KNOWLEDGE = "(From the model's general medical knowledge; not checked against a source.)"


def synthesize(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    update: dict[str, Any]
    if question := state.get("clarification"):
        update = {"final_response": _asked_back(question, state, runtime.context), "status": "needs_clarification"}
    elif refused := refusal.refused_answer(state):
        update = {"final_response": refused}
    elif state.get("intent") == "DIRECT" and not state.get("tool_results"):
        update = _direct(state, runtime)
    else:
        update = _from_evidence(state, runtime)
    said = update["final_response"]
    always = (one for one in alarms_told(state["message"]) if "always" in one and "problem" not in one)
    alarms = (f"{URGENT}{one['name']}. {one['always']}" for one in always)  # also where no chart is open
    update["final_response"] = "\n".join([*(line for line in alarms if line not in said), said])
    if (again := state.get("put_off")) and update.get("status") != "needs_clarification":
        update |= {"clarification": again, "status": "needs_clarification"}
        update["final_response"] += f"\n\n{_question_text(again)}"
    runtime.stream_writer({"type": "answer", "text": update["final_response"]})
    turn = Exchange(user=state["message"], assistant=update["final_response"], tools=_briefs(state))
    return {"grounding": _grounding([]), **update, "history": [*state.get("history", []), turn][-KEPT_TURNS:]}


def _direct(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    """No look-up was needed: manners, a definition, a refusal; general knowledge says where it comes from."""
    context = runtime.context
    if entered := entered_before(state):
        return {"final_response": "\n".join(entered)}
    if unprepared := refusal.unprepared_answer(state):
        return {"final_response": unprepared, "status": "refused"}
    images = state.get("image_findings") or {}
    if images.get("unread"):
        return {"final_response": images["formatted"]}
    reply = direct_reply(known.request(state), state["user_query"])
    if context.reads or (reply.settled and not images):
        update = {"final_response": reply.text, "sources": reply.sources, "unanswered": reply.unanswered}
        return {**update, "status": "refused"} if reply.refused else update
    prompt = answer_prompt(state)
    removed: list[str] = []
    before = _said_before(state)

    def keep(text: str) -> str:
        text, claimed = refusal.without_entries(without_instructions(text, prompt.system)[0], before)
        removed.extend(claimed)
        return text

    written, calls = _written(prompt, keep, runtime)
    notice = "" if images or not written else f"\n\n{GENERAL_KNOWLEDGE}"
    text = (written or reply.text) + notice
    if removed:  # it said that something was recorded
        text = f"{refusal.NOTHING_RECORDED}\n{text}"
    return {"final_response": text, "grounding": _grounding(removed), "calls": calls}


def _from_evidence(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    context = runtime.context
    answer = answer_by_code(state, context)
    lead = answer.lead.text if answer.lead else ""
    update = {"final_response": answer.text, "unanswered": answer.missing, "lead": lead, "groups": answer.groups}
    several = len({item["result"]["patient"]["id"] for item in known.charts(state)}) > 1
    lost = any(item["error"] and item["writes"] for item in state.get("tool_results", []))
    if context.reads or several or lost:  # prose could mix two people, or claim the entry that was not made
        runtime.stream_writer({"type": "token", "text": answer.text})
        return update
    facts, labels = evidence(state, answer.plain), {tool.name: tool.label for tool in context.toolbox}
    removed: list[str] = []
    prompt = answer_prompt(state)
    instructions = "\n".join([prompt.system, *quotations("\n".join(facts))])  # nor does it say a quotation as its own
    results = [item["formatted_result"] for item in state.get("tool_results", []) if not item["error"]]
    confirmed = [line for text in results for line in text.splitlines()] + _said_before(state)

    def keep(text: str) -> str:
        text, leaked = without_instructions(text, instructions)
        text, claimed = refusal.without_entries(text, confirmed)
        checked = ground(text, facts, context.drugs, labels)
        removed.extend([*leaked, *claimed, *checked.removed])
        return checked.answer

    if lead:
        runtime.stream_writer({"type": "token", "text": f"{lead}\n"})
    written, calls = _written(prompt, keep, runtime)
    if len(written.split()) >= MIN_WORDS:
        update |= {"final_response": must_say(written, lead, answer.plain, state), "groups": []}
    return {**update, "grounding": _grounding(removed), "calls": calls}


def answer_by_code(state: AgentState, context: Context) -> Answer:
    """The answer composed from the findings so far."""
    reply = direct_reply(known.request(state), state["user_query"])
    checks, effects = order_checks(state, context), medicine_effects(state, context)
    for chart in (item["result"] for item in known.charts(state)):
        effects.setdefault(chart["patient"]["id"], []).extend(options_checked(state, chart, context))
    answer = compose(state, context.drugs, checks, reply.definition, effects)
    left = any(item["reason"] in (JUDGED, NO_WORDS) for item in answer.missing)  # what is taken may speak of it
    if not (left and len(charts := known.charts(state)) == 1):
        return answer
    told = [
        Fact(line, TAKEN, cite=number(charts[0], state)) for line in warnings_of_taken(charts[0]["result"], context)
    ]
    return answer._replace(blocks=[*answer.blocks, *unique([told])])


def evidence(state: AgentState, composed: str = "") -> list[str]:
    """Everything of this turn that an answer may repeat. The question is not evidence of a patient; its numbers and
    drugs may be said again."""
    images = state.get("image_findings") or {}
    texts = [result["formatted_result"] for result in state.get("tool_results", [])]
    texts += [str(value) for result in state.get("tool_results", []) for value in result["args"].values()]
    if not refusal.any_rejected(state):  # an entry of an earlier turn must not bear out one that was rejected now
        texts += [turn["user"] for turn in state.get("history", [])]
    if patient := state.get("active_patient"):
        texts.append(f"{patient['name']} {patient['id']}")
    return [*texts, composed, state["user_query"], *state.get("error_messages", []), images.get("formatted", "")]


def _said_before(state: AgentState) -> list[str]:
    """The lines of the answers before this one; they may confirm an entry."""
    return [line for turn in state.get("history", []) for line in turn["assistant"].splitlines()]


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


def _asked_back(question: Clarification, state: AgentState, context: Context) -> str:
    """The question; of an order that lacks something, the answer to what the message asks of the chart beside it stands
    above, and what is grave about the order and what follows it below."""
    if question["kind"] != "missing":
        return _question_text(question)
    request, above = known.request(state), list[str]()
    if {*request["asks"]} & {*TOPICS, "change"} and known.charts(state):
        results = (state.get("tool_results") or [])[:-1]
        above = [answer_by_code({**state, "tool_results": results, "clarification": None}, context).text, ""]
    warned = _warned(question["args"], request, context)
    return "\n".join([*above, _question_text(question), *warned, *entries_behind(state)])


def _question_text(question: Clarification) -> str:
    options = "\n".join(f"{number}. {item['label']}" for number, item in enumerate(question["options"], 1))
    listed, args = all(item["label"] in question["question"] for item in question["options"]), question["args"]
    told = f"{question['question']}\n{options}" if options and not listed else question["question"]
    entry = next((f" {of} {args[name]}" for name, of in ENTRIES.items() if args.get(name)), "")
    return told if told.endswith((".", "?")) or question["kind"] != "missing" else told + entry


def _warned(told: dict[str, Any], request: Request, context: Context) -> list[str]:
    """What is grave about an order that lacks something: nobody waits for it until the dose is given."""
    args = {"dosage": "", "frequency": "", **told}
    if not (args.get("medication_name") and args.get("patient_id")):
        return []
    args = {**as_card(args, context)["args"], **known.told_of_one(request)}
    found = [item for item in judge(args, context) if item.rank <= MODERATE and not item.text.startswith(BOXED)]
    return [f"Before it is ordered: {line}" for line in shown([*found, *maxima(args, context)])]


def _written(prompt: Prompt, keep: Callable[[str], str], runtime: Runtime[Context]) -> tuple[str, list[dict[str, Any]]]:
    """What is kept of the model's prose, shown sentence by sentence; and the calls it cost."""

    stream = SentenceStream(keep, lambda text: runtime.stream_writer({"type": "token", "text": text}))

    def hear(piece: str) -> None:
        if runtime.context.stop():
            raise StoppedError("Stopped.", hint="Ask again, or ask something else.")
        stream(piece)

    done = runtime.context.llm.text(prompt, generation("synthesize"), node="synthesize", on_token=hear)
    return stream.finish(), [call.as_dict() for call in done.calls]


def _grounding(removed: list[str]) -> dict[str, Any]:
    return {"supported": not removed, "removed": removed}


def _briefs(state: AgentState) -> list[dict[str, Any]]:
    return [
        {"label": item["tool_label"], "args": item["args"], "brief": shortened(item["formatted_result"], 300)}
        | ({"writes": True, "written": not refusal.is_rejected(item)} if item["writes"] else {})
        for item in state.get("tool_results", [])
        if not item["error"]
    ]
