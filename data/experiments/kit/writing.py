"""Free text under a condition, and what can be checked of it: facts, contradictions, leaks, emptiness, reasoning."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rapidfuzz.process import extractOne

from docgemma.knowledge.drug_names import load_drug_names
from docgemma.llm.base import CLOSE_THINKING, OPEN_THINKING, Prompt, strip_thinking
from docgemma.nodes.context import decided
from docgemma.nodes.synthesize import MIN_WORDS
from docgemma.paths import kit
from docgemma.prompts import BRIEF, answer_prompt, ask_intent, system
from docgemma.rules.grounding import ground
from docgemma.state import AgentState, Exchange, ToolResult
from docgemma.text.words import listed

if TYPE_CHECKING:
    from data.experiments.kit import trial
    from data.experiments.kit.suites import Case
else:
    trial, Case = kit("experiments", "trial"), kit("experiments", "suites").Case

alternatives, says = kit("golden", "cases").alternatives, kit("golden", "checks").says
LABELS = {tool.label: tool for tool in trial.TOOLS}


def write_answer(case: Case, with_: trial.Options, llm: trial.Metered) -> trial.Outcome:
    """The answer from a case's results, or to a question without any."""
    state = AgentState(
        user_query=case["ask"], tool_results=[_result(item, case, with_) for item in case.get("results", [])]
    )
    if with_.get("summary"):
        state["task_summary"] = llm.ask(ask_intent(state, list(trial.TOOLS)), {}).task_summary
    if exchange := with_.get("exchange"):
        state["history"] = [Exchange(user=exchange["user"], assistant=exchange["assistant"], tools=[])]
    text, closed = _written(_prompt(state, with_), with_, llm)
    evidence = [case["ask"], *(result["formatted_result"] for result in state["tool_results"])]
    grounded = ground(text, evidence, load_drug_names(), {tool.name: tool.label for tool in trial.TOOLS})
    text = grounded.answer if with_.get("ground") else text
    found = [any(says(text, one) for one in alternatives(fact)) for fact in case["facts"]]
    checks = {
        "facts": all(found),
        "consistent": not any(says(text, wrong) for wrong in case.get("contradicts", [])),
        "clean": not any(says(text, word, whole_words=True) for word in inside_words()),
        "filled": len(text.split()) >= MIN_WORDS,
        "grounded": grounded.supported,
        "reasons": any(says(text, word, whole_words=True) for word in with_.get("reasoning_words", [])),
        "closed": closed,
    }
    return trial.Outcome(text, checks, {"facts": sum(found) / len(found), "words": len(text.split())})


def inside_words() -> list[str]:
    """What no clinician may read: tools' names and words of the system's inside."""
    return [*(tool.name for tool in trial.TOOLS), *listed("claims", "inside")]


def _prompt(state: AgentState, with_: trial.Options) -> Prompt:
    """As the agent asks, but for `system` (other words), `brief`, `add` (behind the system's words), `prefix`."""
    prompt = answer_prompt(state)
    told = with_.get("system", prompt.system)
    if "brief" in with_:
        told = BRIEF * bool(with_["brief"]) + system("synthesize")
    return replace(prompt, system="\n\n".join(filter(None, [told, with_.get("add")])), prefix=with_.get("prefix", ""))


def _written(prompt: Prompt, with_: trial.Options, llm: trial.Metered) -> tuple[str, bool]:
    """The visible text, and whether every thinking span of it is closed. An opened span is left to the model alone."""
    config = trial.sampling("synthesize", with_)
    if prompt.prefix.rfind(OPEN_THINKING) <= prompt.prefix.rfind(CLOSE_THINKING):
        return llm.text(prompt, config, node="synthesize").value, True
    raw = prompt.prefix + llm.complete(prompt, config, node="synthesize").text
    return strip_thinking(raw).strip(), raw.rfind(CLOSE_THINKING) > raw.rfind(OPEN_THINKING)


def _result(item: dict[str, Any], case: Case, with_: trial.Options) -> ToolResult:
    """`errors: raw` puts what a program prints in the place of the sentence; `headings: names` the tool's name."""
    tool = LABELS[extractOne(item["label"], list(LABELS))[0]]
    text = item["text"]
    if with_.get("errors") == "raw" and case.get("error"):
        text = text.replace(case["formatted_error"], case["raw_error"])
    return {**decided(tool, {}, {}, text), "tool_label": tool.name if with_.get("headings") == "names" else tool.label}
