"""What a model can be asked about tools, results and next steps: what came back, and whether it is right."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Optional

from pydantic import BaseModel, Field, create_model
from rapidfuzz.fuzz import token_set_ratio

from docgemma import prompts
from docgemma.llm.base import Prompt
from docgemma.nodes.context import decided
from docgemma.nodes.tool_select import COPIED, constrain, options
from docgemma.paths import kit
from docgemma.prompts import ANALYTICAL_PREFIX, Ask
from docgemma.rules.known import NOTHING
from docgemma.rules.plan import missing, runnable
from docgemma.schemas import NO_TOOL, Schema
from docgemma.state import AgentState, ToolResult
from docgemma.text.words import plain
from docgemma.tools import Tool

if TYPE_CHECKING:
    from data.experiments.kit import trial
    from data.experiments.kit.suites import Case
else:
    trial, Case = kit("experiments", "trial"), kit("experiments", "suites").Case

unlinked, same_value = kit("experiments", "unlinked"), kit("golden", "checks").same_value
COMPOSED = frozenset({"query", "condition", "note_text"})  # a model may word these otherwise
ALIKE = 80  # of 100: how alike two such texts are
STEPS = 5  # slots of a full plan, and most steps of a reactive one
TAKEN = ("metformin", "lisinopril")  # by every patient of a plan
DONE = "Done; what was asked for is here."
FOUND = {"search_patient": "One patient matches. The id is abc-123."}
REASON = "Which kind of look-up or entry does this need, and why? Think it through in a few sentences."
SUITABLE = "Is this tool suitable for the task?\n\nTool: "
PLAN = "Plan the whole task now: name every tool in the order in which it has to run, and leave the other steps empty."


def choose_tool(case: Case, with_: trial.Options, llm: trial.Metered) -> trial.Outcome:
    """Stage 1: one of the ten tools, or none."""
    state, way, tools = _read(case), with_.get("way"), list(trial.TOOLS)
    if way == "reader":
        return _chosen(case, next((step.tool for step in missing(state)), NO_TOOL))
    if with_.get("narrowing"):
        tools = [tool for tool in trial.TOOLS if tool.name in runnable(state)]
        if not tools:
            return _chosen(case, NO_TOOL)
    if way == "boolean":
        marked = [tool.name for tool in tools if _suits(tool, case, with_, llm)]
        only = marked[0] if len(marked) == 1 else "several" if marked else NO_TOOL
        return _chosen(case, only, marked=len(marked))
    ask = _selection(state, tools, with_, llm)
    if way == "joint":
        ask = replace(ask, node="tool_arguments", schema=joint_schema(tools))
    if way == "reason":
        thought = llm.text(replace(ask.prompt, user=f"{ask.prompt.user}\n\n{REASON}", prefix=""),
                           trial.sampling("synthesize", with_), node="synthesize").value  # fmt: skip
        ask = replace(ask, prompt=replace(ask.prompt, user=f"{ask.prompt.user}\n\nReasoning: {thought}"))
    return _chosen(case, llm.ask(ask, with_).tool_name)


def fill_arguments(case: Case, with_: trial.Options, llm: trial.Metered) -> trial.Outcome:
    """Stage 2: the arguments of the right tool, or in a joint schema the tool with them."""
    state, tool, way = _read(case), trial.TOOLS[case["tool"]], with_.get("way")
    steps = [step for step in missing(state) if step.tool == tool.name]
    if way == "reader":
        return _filled(case, steps[0].args if steps else {})
    back = bool(with_.get("reversed"))
    if way == "joint":
        prompt = _selection(state, list(trial.TOOLS), with_, llm).prompt
        values = llm.ask(Ask("tool_arguments", prompt, joint_schema(list(trial.TOOLS), back)), with_).model_dump()
        return _filled(case, values, right_tool=values.pop("tool_name") == tool.name)
    schema, settled = ordered(tool.args, back, bool(with_.get("nullable"))), dict[str, Any]()
    if with_.get("copied"):
        fields = {name: options(name, steps, state) for name in tool.args.model_fields if name in COPIED}
        left, settled = constrain(tool.args, fields)
        if left is None:
            return _filled(case, settled)
        schema = left
    told: AgentState = state if with_.get("hints") else {**state, "request": NOTHING}
    ask = prompts.ask_arguments(told, tool, schema)
    prompt = replace(ask.prompt, prefix=ANALYTICAL_PREFIX if with_.get("prefix") else "")
    return _filled(case, {**settled, **llm.ask(replace(ask, prompt=prompt), with_).model_dump()})


def plan(case: Case, with_: trial.Options, llm: trial.Metered) -> trial.Outcome:
    """Every tool of a request, in order: planned at once, or one after the other as results come in."""
    state, names = _read(case), tuple(tool.name for tool in trial.TOOLS)
    got: list[str] = []
    if with_["way"] == "reader":
        got = [step.tool for step in unlinked.follow(state, medicines=TAKEN)]
    elif with_["way"] == "full":
        slots: dict[str, Any] = {f"step_{at}": (Optional[Literal[names]], None) for at in range(1, STEPS + 1)}
        schema = create_model("TaskPlan", __base__=Schema, **slots | {"step_1": (Literal[names], ...)})
        prompt = _selection(state, list(trial.TOOLS), with_, llm).prompt
        prompt = replace(prompt, user=f"{prompt.user}\n\n{PLAN}", prefix="")
        value = llm.ask(Ask("tool_arguments", prompt, schema), with_).model_dump()
        got = [value[f"step_{at}"] for at in range(1, STEPS + 1) if value.get(f"step_{at}")]
    else:
        while len(got) < STEPS:
            name = llm.ask(_selection(state, list(trial.TOOLS), with_, llm, bool(got)), with_).tool_name
            if name == NO_TOOL:
                break
            got.append(name)
            state["tool_results"] = [*state["tool_results"], decided(trial.TOOLS[name], {}, {}, FOUND.get(name, DONE))]
    wanted = case["steps"]
    right = sum(one == other for one, other in zip(got, wanted, strict=False))
    checks = {"plan": got == wanted, "tools": sorted(got) == sorted(wanted)}
    return trial.Outcome(got, checks, {"steps_right": right / max(len(got), len(wanted))})


def classify(case: Case, with_: trial.Options, llm: trial.Metered) -> trial.Outcome:
    """How good a tool's result is."""
    state = AgentState(user_query=case["ask"], task_summary=case["ask"][:200])
    got = llm.ask(prompts.ask_quality(state, decided(trial.TOOLS[case["tool"]], {}, {}, case["result"])), with_).quality
    return trial.Outcome(got, {"quality": got == case["quality"]})


def decide(case: Case, with_: trial.Options, llm: trial.Metered) -> trial.Outcome:
    """One of the `choices` in a situation. `show`: keys of a case that are told; `label`: the key of the right one."""
    wanted, choices = case[with_["label"]], with_["choices"]
    wanted = choices[0 if wanted else 1] if isinstance(wanted, bool) else wanted
    told = [f"Clinician's question: {case['ask']}", *(_shown(key, case[key]) for key in with_["show"])]
    if with_.get("way") == "words":
        text = told[-1].casefold()
        got = next((name for name, words in with_["words"].items() if any(word in text for word in words)), choices[-1])
    elif with_.get("way") == "node":  # as the error handler asks
        result = decided(trial.TOOLS[case["tool"]], case["args"], {}, case["error"])
        failed: ToolResult = {**result, "error": case["error"], "error_type": "server_error"}
        got = llm.ask(prompts.ask_retry(AgentState(user_query=case["ask"]), failed), with_).strategy
    else:
        reason: dict[str, Any] = {"reasoning": (str, Field(min_length=1, max_length=400))}
        decision: dict[str, Any] = {"decision": (Literal[tuple(choices)], ...)}
        order = {None: decision, "first": reason | decision, "last": decision | reason}[with_.get("reason")]
        schema = create_model("Decision", __base__=Schema, **order)
        ask = Ask("result_classify", Prompt("\n\n".join(told), with_["instruction"]), schema)
        got = llm.ask(ask, with_).model_dump()["decision"]
    return trial.Outcome(got, {"decision": got == wanted})


def joint_schema(tools: list[Tool], back: bool = False) -> type[BaseModel]:
    """The tool with every argument of every tool, all nullable; `back`: the arguments first."""
    fields: dict[str, Any] = {"tool_name": (Literal[(*(tool.name for tool in tools), NO_TOOL)], ...)}
    for tool in tools:
        fields |= {name: (Optional[item.annotation], None) for name, item in tool.args.model_fields.items()}
    return create_model("ToolCall", __base__=Schema, **dict(reversed(fields.items())) if back else fields)


def ordered(args: type[BaseModel], back: bool, nullable: bool) -> type[BaseModel]:
    """A tool's arguments in their order or reversed, optional ones first then; `nullable`: each may be null."""
    if not (back or nullable):
        return args
    kept = args.model_fields.items()
    either = [(Optional[item.annotation], None) if nullable else (item.annotation, item) for _, item in kept]
    fields: dict[str, Any] = dict(zip((name for name, _ in kept), either, strict=True))
    return create_model(args.__name__, __base__=Schema, **dict(reversed(fields.items())) if back else fields)


def _read(case: Case) -> AgentState:
    image = "analyze_medical_image" in (case.get("tool"), *case.get("steps", []))
    state: AgentState = unlinked.situation(case["ask"], unlinked.understood(case["ask"]), image=image)
    return {**state, "task_summary": case["ask"][:200]}


def _selection(
    state: AgentState, tools: list[Tool], with_: trial.Options, llm: trial.Metered, none: bool = True
) -> Ask[Any]:
    """The question of stage 1: `describe` none, short or full; `shots` a number of examples, or matched to what an
    intent call suggests; `prefix` off."""
    examples = {tool.name: tool for tool in trial.TOOLS}
    shots: Any = with_.get("shots", 0)
    if shots == "matched":
        suggested = llm.ask(prompts.ask_intent(state, list(trial.TOOLS)), {}).suggested_tool
        shown = [examples[suggested]] if suggested else []
    else:
        shown = [list(examples.values())[at * len(examples) // shots] for at in range(shots)]
    described = {
        "none": [tool.name for tool in tools],
        "short": [f"{tool.name}{tool.signature}: {tool.label}" for tool in tools],
        "full": [tool.full_description for tool in tools],
    }[with_.get("describe", "full")]
    role, list_, example, close = prompts.system("tool_select").split("\n\n")
    system = [role, list_.format(full_desc_tool_list="\n\n".join(f"- {line}" for line in described))]
    system += [example.format(matched_example_query=tool.example, matched_example_tool=tool.name) for tool in shown]
    ask = prompts.ask_tool(state, tools, none)
    prefix = ask.prompt.prefix if with_.get("prefix", True) else ""
    return replace(ask, prompt=replace(ask.prompt, system="\n\n".join([*system, close]), prefix=prefix))


def _suits(tool: Tool, case: Case, with_: trial.Options, llm: trial.Metered) -> bool:
    prompt = Prompt(f"Clinician's question: {case['ask']}", SUITABLE + tool.full_description)
    schema = create_model("Suitability", __base__=Schema, suitable=(bool, ...))
    return bool(llm.ask(Ask("tool_select", prompt, schema), with_).model_dump()["suitable"])


def _chosen(case: Case, got: str, **detail: Any) -> trial.Outcome:
    return trial.Outcome(got, {"tool": got in (case["tool"], *case.get("also_right", []))}, detail)


def _filled(case: Case, got: dict[str, Any], right_tool: bool = True) -> trial.Outcome:
    """Every wanted argument is there; what else an optional one holds does not count."""
    wanted = case["args"]
    right = all(_alike(name, value, got.get(name)) for name, value in wanted.items())
    detail = {name: got.get(name) is not None for name in wanted}
    return trial.Outcome(got, {"arguments": right and right_tool, "tool": right_tool}, {"filled": detail})


def _alike(name: str, wanted: Any, got: Any) -> bool:
    if isinstance(wanted, list):
        left = [str(item) for item in got or []]
        return len(left) == len(wanted) and all(any(same_value(str(one), item) for item in left) for one in wanted)
    if name in COMPOSED:
        return token_set_ratio(plain(str(wanted)), plain(str(got or ""))) >= ALIKE
    return bool(same_value(str(wanted), "" if got is None else str(got)))


def _shown(key: str, value: Any) -> str:
    """A part of a case as the model reads it; a tool's result under its label."""
    if isinstance(value, str):
        return f"{key.capitalize()}:\n{value}"
    parts = [
        item if isinstance(item, str) else f"[{trial.TOOLS[item['tool']].label}]\n{item['result']}" for item in value
    ]
    return "\n\n".join(["Results so far:", *parts])


TASKS = {
    "tool": choose_tool, "arguments": fill_arguments, "plan": plan, "quality": classify, "decision": decide,
    "answer": kit("experiments", "writing").write_answer,
}  # fmt: skip
