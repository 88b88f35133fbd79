"""The v1 graph: decompose, then plan, execute and check each part. The baseline that v3 is compared with."""

from langgraph.graph import END, START

from docgemma.graphs import Graph, graph_of
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
NEXT = {"plan": "plan_tool", "tool_execute": "tool_execute", "clarify": "synthesize", "finish": "synthesize"}


def after_input(state: AgentState) -> str:
    """A doubt is asked; an answered clarification goes on where the work stopped; a new question is classified."""
    if state.get("clarification"):
        return "synthesize"
    if state["resumed"]:
        return "tool_execute" if state["next_node"] == "tool_execute" else "check_result"
    return "complexity_router"


def after_complexity(state: AgentState) -> str:
    return "synthesize" if state["route"] == "direct" else "decompose"


def after_parts(state: AgentState) -> str:
    return "synthesize" if state.get("clarification") or not state["subtasks"] else "plan_tool"


def after_plan(state: AgentState) -> str:
    return "tool_execute" if state.get("current_tool") else "check_result"


def after_check(state: AgentState) -> str:
    return NEXT[state["next_node"] or "finish"]


def build() -> Graph:
    graph = graph_of(NODES)
    graph.add_edge(START, "image_detection")
    starts = ["complexity_router", "tool_execute", "check_result", "synthesize"]
    graph.add_conditional_edges("image_detection", after_input, starts)
    graph.add_conditional_edges("complexity_router", after_complexity, ["decompose", "synthesize"])
    graph.add_conditional_edges("decompose", after_parts, ["plan_tool", "synthesize"])
    graph.add_conditional_edges("plan_tool", after_plan, ["tool_execute", "check_result"])
    graph.add_conditional_edges("tool_execute", after_execution, {"result_classify": "check_result", END: END})
    graph.add_conditional_edges("check_result", after_check, ["plan_tool", "tool_execute", "synthesize"])
    graph.add_conditional_edges("synthesize", after_answer, ["reopen_card", END])
    graph.add_edge("reopen_card", "tool_execute")
    return graph
