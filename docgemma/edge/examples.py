"""From a case to what is learnt: one text that grows through the turn, and every call of the turn as a branch of it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from docgemma.edge.answers import answer
from docgemma.edge.follow_ups import FollowUps
from docgemma.edge.lexicon import Lexicon
from docgemma.edge.plans import Plans
from docgemma.edge.prompts import EVIDENCE_CHARS, EdgeProfile, context
from docgemma.edge.quality import judged_quality, settled_quality
from docgemma.edge.questions import Case, Questions
from docgemma.edge.worlds import FAILURES, World
from docgemma.llm.base import Prompt
from docgemma.llm.chat import chatml
from docgemma.llm.layout import write
from docgemma.nodes.tool_select import constrain
from docgemma.prompts import Ask
from docgemma.rules.drugs import DrugNames
from docgemma.rules.entities import extract
from docgemma.rules.errors import ERROR_TEMPLATES
from docgemma.rules.spans import choices
from docgemma.schemas import NO_TOOL
from docgemma.state import ActivePatient, AgentState, ToolResult, Turn
from docgemma.tools import toolbox

END = "<|im_end|>"
QUALITIES = ("success_rich",) * 5 + ("success_partial",) * 4 + ("no_results",) * 2
SAME = frozenset({"timeout", "rate_limit", "server_error", "service_unavailable", "invalid_response"})


MIX = {
    "reasoning": 3,
    "direct": 25,
    "single": 27,
    "follow_up": 6,
    "negated": 4,
    "answered": 15,
    "failing": 2,
    "against_chart": 2,
    "several": 6,
    "several_answered": 10,
}  # of 100 turns
ASKED = {
    "add_allergy": 5,
    "find_clinical_trials": 4,
    "search_medical_literature": 3,
    "save_clinical_note": 5,
    "get_patient_chart": 3,
}  # how often each tool, where 2 is the rule
ANSWERED = {
    "get_patient_chart": 8,
    "check_drug_safety": 5,
    "check_drug_interactions": 4,
    "search_medical_literature": 4,
    "find_clinical_trials": 4,
    "search_patient": 2,
}


@dataclass(frozen=True)
class Branch:
    """One call: it reads the trunk's first `cut` characters, then `prompt`; `completion` is what is learnt."""

    task: str
    cut: int
    prompt: str
    completion: str


@dataclass
class Example:
    """A turn as text. Branches do not see each other."""

    trunk: str
    branches: list[Branch] = field(default_factory=list)


class Builder:
    """Turns cases into examples with the same prompts, rules and formatters that the graph uses."""

    def __init__(self, lexicon: Lexicon, drugs: DrugNames):
        self.words, self.drugs, self.world = lexicon, drugs, World(lexicon)
        self.profile, self.tools = EdgeProfile(), {tool.name: tool for tool in toolbox()}
        self.skipped: Counter[str] = Counter()
        self.beside: frozenset[int] = frozenset()  # places of results that have nothing to do with the question

    def build(self, case: Case, with_results: bool) -> Example:
        state, self.beside = start(case, self.drugs), frozenset()
        calls: list[tuple[str, Prompt, str]] = []
        if case.kind != "reasoning":  # v3 has no word for it
            label = case.plan[0][0] if case.plan else "DIRECT"
            self._learn(calls, self.profile.intent(state, list(self.tools.values())), "intent", label)
        if case.kind == "reasoning" or self.words.chance(0.25):
            self._learn(calls, self.profile.triage(state), "triage", route(case))
        if len(case.plan) > 1 or (case.plan and self.words.chance(0.1)):
            steps = [tool for tool, _ in case.plan]
            ask = self.profile.decompose(state, list(self.tools.values()))
            self._learn(calls, ask, "steps", ask.schema.model_validate({"tools": steps}))
        for step, (tool, args) in enumerate(case.plan):
            if step and not with_results:
                break
            if step or with_results or self.words.chance(0.6):  # the same as the intent's label
                self._learn(calls, self.profile.select(state, list(self.tools.values()), bool(step)), "tool", tool)
            self._arguments(calls, state, tool, args)
            if with_results:
                self._step(calls, state, case, tool, args)
        if case.plan and with_results:
            self._close(calls, state, case)
        return assemble(state, calls)

    def failing(self, case: Case) -> Example:
        """A call that failed, and how it is tried again."""
        state = start(case, self.drugs)
        calls: list[tuple[str, Prompt, str]] = []
        tool, args = case.plan[0]
        kind = self._failure(tool)
        if kind == "drug_not_in_database":  # never tried again
            kind = "not_found"
        result = self.world.failed(tool, filled(args, case, state), kind)
        state["tool_results"] = [result]
        strategy = "retry_same" if kind in SAME else "retry_different_args"
        self._learn(calls, self.profile.retry(state, result), "retry", strategy)
        if self.words.chance(0.7):
            state["error_messages"] = [final(result)]
        calls.append(("answer", self.profile.synthesize(state), " ".join(state["error_messages"] or [result["error"]])))
        return assemble(state, calls)

    def _step(self, calls: list, state: AgentState, case: Case, tool: str, args: dict[str, Any]) -> None:
        if case.kind == "against_chart" and tool == "check_drug_interactions":
            charted = [
                item["name"] for item in state["tool_results"][-1]["result"].get("medications", []) if item["active"]
            ]
            args = {"drug_names": [args["drug_names"][0], *charted[:5]] if charted else args["drug_names"]}
        args, last = filled(args, case, state), tool == case.plan[-1][0]
        if self.words.chance(0.06) and tool != "search_patient":
            failed = self.world.failed(tool, args, self._failure(tool))
            state["tool_results"] = [*state["tool_results"], failed]
            state["error_messages"] = [*state["error_messages"], final(failed)]
            return
        intended = self.words.pick(QUALITIES) if last else "success_rich"
        result = self.world.result(tool, args, case.question, intended)
        state["tool_results"] = [*state["tool_results"], result]
        if tool == "search_patient" and result["result"]["patients"] and len(case.plan) > 1:
            state["active_patient"] = {"id": case.found_as[0], "name": result["result"]["patients"][0]["name"]}
        quality = settled_quality(case.question, result)
        if quality is None:  # what is settled is never generated
            quality = judged_quality(result, intended)
            self._learn(calls, self.profile.assess(state, result), "quality", quality)
        listed = result["result"].get("articles", result["result"].get("trials"))
        if listed and quality == "no_results":
            self.beside |= {len(state["tool_results"]) - 1}

    def _failure(self, tool: str) -> str:
        return self.words.pick(FAILURES if tool == "check_drug_safety" else FAILURES[:-1])

    def _close(self, calls: list, state: AgentState, case: Case) -> None:
        self._learn(calls, self.profile.select(state, list(self.tools.values()), True), "tool", NO_TOOL)
        done = [item for item in state["tool_results"] if not item["error"]]
        told = [answer(case.question, state["tool_results"], EVIDENCE_CHARS, self.beside)] if done else []
        text = " ".join([*told, *state["error_messages"]])
        calls.append(("answer", self.profile.synthesize(state), text))

    def _arguments(self, calls: list, state: AgentState, name: str, args: dict[str, Any]) -> None:
        tool = self.tools[name]
        if name == "analyze_medical_image" and self.words.chance(0.7):
            return  # the whole question, as a rule: little to learn
        options = {field: choices(field, name, state, self.drugs) for field in tool.args.model_fields}
        schema, _settled = constrain(tool.args, options)
        if schema is None:
            return
        gold = {}
        for key in schema.model_fields:
            value = fit(args.get(key), options[key])
            if value is None and key == "note_type":  # nothing said, or a kind that code does not know
                value = "progress note" if args[key] is None else "clinical note"
            if value is None and schema.model_fields[key].is_required():
                self.skipped[f"{name}.{key}"] += 1
                return
            gold[key] = value
        self._learn(calls, self.profile.arguments(state, tool, schema), "args", schema.model_validate(gold))

    @staticmethod
    def _learn(calls: list, ask: Ask, task: str, gold: Any) -> None:
        if isinstance(gold, str):
            (field_name,) = ask.schema.model_fields
            gold = ask.schema.model_validate({field_name: gold})
        calls.append((task, ask.prompt, write(gold, ask.layout)))


def start(case: Case, drugs: DrugNames) -> AgentState:
    """The state as the first node leaves it."""
    patient = ActivePatient(id=case.patient[0], name=case.patient[1]) if case.patient else None
    return AgentState(
        user_query=case.question, history=[Turn(user=case.before, assistant="", tools=[])] if case.before else [],
        active_patient=patient, turn_patient=patient, tool_results=[], error_messages=[],
        extracted_entities=extract(case.question, drugs, has_image=case.image),
    )  # fmt: skip


def filled(args: dict[str, Any], case: Case, state: AgentState) -> dict[str, Any]:
    """Arguments as they would have been called with, and under "_" names what the invented record should say."""
    args = {key: value for key, value in args.items() if value is not None}
    if "name" in args and case.found_as:
        args["_id"] = case.found_as[0]
    if "patient_id" in args and (patient := state.get("active_patient")) and patient["id"] == args["patient_id"]:
        args["_name"] = patient["name"]
    return {"note_type": "progress note"} | args if "note_text" in args else args


def route(case: Case) -> str:
    """The v2 graph's four ways."""
    if case.kind == "reasoning":
        return "reasoning"
    return ("direct", "lookup", "multi_step")[min(len(case.plan), 2)]


def final(failed: ToolResult) -> str:
    """What a clinician is told once nothing is tried again."""
    if failed["error_type"] in SAME:
        return ERROR_TEMPLATES["max_retries"].format(tool_label=failed["tool_label"])
    return failed["error"] or ""


def fit(value: Any, options: list[str] | None) -> Any:
    """A gold value in the spelling of its options; None where it is not among them."""
    if options is None or value is None:
        return value
    if isinstance(value, list):
        found = [fit(item, options) for item in value]
        return None if None in found else found
    return next((item for item in options if plain(item) == plain(value)), None)


def plain(text: str) -> str:
    return "".join(text.casefold().split()).strip("\"'.,;:?!")


def assemble(state: AgentState, calls: list[tuple[str, Prompt, str]]) -> Example:
    """The longest context is the trunk; what a prompt adds to its share of it is the branch."""
    head = chatml([{"role": "user", "content": "\x00"}]).split("\x00")
    trunk = head[0] + context(state)
    example = Example(trunk)
    for task, prompt, completion in calls:
        whole = head[0] + prompt.user + head[1] + prompt.prefix
        cut = whole.rindex("\n", 0, _shared(trunk + "\n", whole))
        example.branches.append(Branch(task, cut, whole[cut:], completion + END))
    return example


def _shared(one: str, other: str) -> int:
    """Length of the common beginning."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def cases(lexicon: Lexicon):
    """Endless cases in the mix that is trained on: (case, how it is built)."""
    questions = Questions(lexicon)
    plans, follow_ups = Plans(lexicon, questions), FollowUps(lexicon, questions)
    tools = list({tool.name: 0 for tool in toolbox()})
    shares = dict(MIX)
    kinds, weights = list(shares), list(shares.values())
    while True:
        kind = lexicon.rng.choices(kinds, weights)[0]
        if kind == "reasoning":
            yield questions.reasoning(), "head"
        elif kind == "direct":
            yield questions.direct(), "head"
        elif kind == "single":
            yield questions.single(lexicon.rng.choices(tools, [ASKED.get(tool, 2) for tool in tools])[0]), "head"
        elif kind == "follow_up":
            yield follow_ups.any(), "head"
        elif kind == "negated":
            yield plans.negated(), "head"
        elif kind == "answered":
            yield questions.single(lexicon.rng.choices(tools, [ANSWERED.get(tool, 1) for tool in tools])[0]), "whole"
        elif kind == "failing":
            yield questions.single(lexicon.pick(tools)), "failing"
        elif kind == "against_chart":
            yield plans.against_chart(), lexicon.pick(("head", "whole"))
        else:
            yield plans.several(), "whole" if kind == "several_answered" else "head"
