"""The v1 graph: decompose, then plan, execute and check each part. The baseline that v3 is compared with."""

from langgraph.graph import END, START

from docgemma.graphs import Graph, Paths, graph_of
from docgemma.graphs.v3 import after_answer, after_execution
from docgemma.nodes.assess import check_result
from docgemma.nodes.decompose import decompose
from docgemma.nodes.input_assembly import detect_image
from docgemma.nodes.plan_tool import plan_tool
from docgemma.nodes.synthesize import synthesize
from docgemma.nodes.tool_execute import execute_tool, reopen_card
from docgemma.nodes.triage import classify_complexity
from docgemma.state import AgentState

NODES = {
    "image_detection": detect_image,
    "complexity_router": classify_complexity,
    "decompose": decompose,
    "plan_tool": plan_tool,
    "tool_execute": execute_tool,
    "check_result": check_result,
    "synthesize": synthesize,
    "reopen_card": reopen_card,
}


def entry(state: AgentState) -> str:
    """A doubt is asked; an answered clarification goes on where the work stopped."""
    return "ask" if state.get("clarification") else (state["resumed"] and state["next_node"]) or "new"


def route(state: AgentState) -> str:
    return state["route"] or ""


def work(state: AgentState) -> str:
    return "answer" if state.get("clarification") or not state["subtasks"] else "work"


def planned(state: AgentState) -> str:
    return "call" if state.get("current_tool") else "none"


def decided(state: AgentState) -> str:
    return state["next_node"] or ""


def build() -> Graph:
    graph, answer, check = graph_of(NODES), "synthesize", "check_result"
    start: Paths = {"ask": answer, "new": "complexity_router", "router": check, "tool_execute": "tool_execute"}
    after: Paths = {"plan": "plan_tool", "tool_execute": "tool_execute", "clarify": answer, "finish": answer}
    graph.add_edge(START, "image_detection")
    graph.add_conditional_edges("image_detection", entry, start)
    graph.add_conditional_edges("complexity_router", route, {"direct": answer, "complex": "decompose"})
    graph.add_conditional_edges("decompose", work, {"answer": answer, "work": "plan_tool"})
    graph.add_conditional_edges("plan_tool", planned, {"call": "tool_execute", "none": check})
    graph.add_conditional_edges("tool_execute", after_execution, {"result_classify": check, END: END})
    graph.add_conditional_edges("check_result", decided, after)
    graph.add_conditional_edges("synthesize", after_answer, ["reopen_card", END])
    graph.add_edge("reopen_card", "tool_execute")
    return graph
