"""The graph of the prescreen: choose a call, execute it, choose again; then rank, and screen the shortlist.

intake (done by the caller) -> choose -> call -> choose | rank -> screen. Every step is checkpointed: a run that was
killed resumes with the same budget, and asks nothing twice. A finished run is deleted from the memory.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime

from docgemma.llm.base import LLM
from docgemma.prescreen.rank import rank
from docgemma.prescreen.records import Candidate, Evidence, Facts, Search, ToolCall
from docgemma.prescreen.screen import NO_JUDGE, fitness, screen
from docgemma.prescreen.toolset import Orchestrator, Toolset
from docgemma.quiet import quiet
from docgemma.settings import Settings

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver

SCREENED = 10  # trials of the shortlist whose criteria are judged
TURNS = 400  # more than any budget needs


class PrescreenState(TypedDict, total=False):
    """What a run knows; plain data, so that a checkpoint holds it."""

    facts: Facts
    evidence: dict[str, Any]  # the fields of Evidence
    pending: list[ToolCall]
    candidates: list[Candidate]
    screened: str  # why the criteria are not judged, "" where they are


@dataclass
class Tools:
    """What the nodes use."""

    toolset: Toolset
    orchestrator: Orchestrator
    settings: Settings
    judge: LLM | None = None  # judges criteria; None or the edge model: not judged


def choose(state: PrescreenState, runtime: Runtime[Tools]) -> PrescreenState:
    """Ask the orchestrator what to call next."""
    evidence, tools = Evidence(**state["evidence"]), runtime.context
    left = tools.toolset.left(evidence)
    pending = tools.orchestrator.next_calls(state["facts"], evidence, left) if left else []
    return {"pending": pending, "evidence": vars(evidence) | {"answers": []}}


def call(state: PrescreenState, runtime: Runtime[Tools]) -> PrescreenState:
    """Execute the first of the pending calls; one call is one checkpoint."""
    evidence = Evidence(**state["evidence"])
    evidence.answers = [*evidence.answers, runtime.context.toolset.execute(state["pending"][0], evidence)]
    return {"pending": state["pending"][1:], "evidence": vars(evidence)}


def rank_trials(state: PrescreenState) -> PrescreenState:
    return {"candidates": rank(state["facts"], Evidence(**state["evidence"]))}


def screen_shortlist(state: PrescreenState, runtime: Runtime[Tools]) -> PrescreenState:
    """Judge the criteria of the best candidates; those that the patient fits best come first among them."""
    evidence, judge = Evidence(**state["evidence"]), runtime.context.judge
    if judge is None or judge.profile == "edge":
        return {"screened": NO_JUDGE}
    shortlist = [evidence.studies[item["nct_id"]] for item in state["candidates"][:SCREENED]]
    judged = screen(state["facts"]["note"], shortlist, judge, runtime.context.settings)
    candidates: list[Any] = [item | {"criteria": judged.get(item["nct_id"], [])} for item in state["candidates"]]
    best = sorted(candidates[:SCREENED], key=lambda item: -item["score"] * fitness(item["criteria"]))
    return {"candidates": best + candidates[SCREENED:], "screened": ""}


def build() -> StateGraph[PrescreenState, Tools, PrescreenState, PrescreenState]:
    graph = StateGraph(PrescreenState, context_schema=Tools)
    graph.add_node("choose", choose)
    graph.add_node("call", call)
    graph.add_node("rank", rank_trials)
    graph.add_node("screen", screen_shortlist)
    graph.add_edge(START, "choose")
    graph.add_conditional_edges("choose", lambda state: "call" if state["pending"] else "rank", ["call", "rank"])
    graph.add_conditional_edges("call", lambda state: "call" if state["pending"] else "choose", ["call", "choose"])
    graph.add_edge("rank", "screen")
    return graph


def run(
    facts: Facts,
    tools: Tools,
    memory: "BaseCheckpointSaver[str]",
    name: str = "local",
    on_search: Callable[[Search], object] | None = None,
) -> dict[str, Any]:
    """One run, or the rest of one that was cut off: the contract's JSON.

    Args:
        name: of the orchestrator; the same note, name and budget is the same run.
        on_search: called with every call as it was executed.

    Raises:
        StoreError, ModelError: what failed, and what to do. After an outage of the registry what was found before is
            returned, marked as partial.
    """
    if on_search:
        tools.toolset.trace = on_search
    app = build().compile(checkpointer=memory)
    told = json.dumps([facts, name, tools.toolset.budget], sort_keys=True)
    thread = f"prescreen-{hashlib.sha256(told.encode()).hexdigest()[:24]}"
    config: RunnableConfig = {"configurable": {"thread_id": thread}, "recursion_limit": TURNS}
    begun = bool(app.get_state(config).tasks)
    given = None if begun else PrescreenState(facts=facts, evidence=vars(Evidence()), pending=[])
    with quiet():
        done = app.invoke(given, config, context=tools, durability="sync")
    memory.delete_thread(thread)
    evidence = Evidence(**done["evidence"])
    return {
        "candidates": done["candidates"], "searches": evidence.searches, "calls": evidence.calls,
        "budget": tools.toolset.budget, "partial": bool(evidence.partial), "why_partial": evidence.partial,
        "not_screened": done["screened"], "facts": {key: value for key, value in facts.items() if key != "note"},
        "found": len(evidence.studies), "resumed": begun, "orchestrator": name,
        "tokens": evidence.tokens, "cost": evidence.cost,
    }  # fmt: skip
