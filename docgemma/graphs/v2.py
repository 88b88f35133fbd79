"""The v2 graph: four routes (direct, look-up, reasoning, multi-step), each as short as the question allows."""

from langgraph.graph import END, START

from docgemma.graphs import Graph, graph_of
from docgemma.graphs.v3 import after_answer, after_execution
from docgemma.nodes.assess import assess_result, choose_strategy
from docgemma.nodes.decompose import decompose, extract_needs, think
from docgemma.nodes.input_assembly import detect_image
from docgemma.nodes.plan_tool import fix_args, plan_tool, take_fast_path, validate_call
from docgemma.nodes.synthesize import synthesize
from docgemma.nodes.tool_execute import execute_tool, reopen_card
from docgemma.nodes.triage import assemble_context, triage
from docgemma.state import AgentState

NODES = {
    "image_detection": detect_image,
    "context_assembler": assemble_context,
    "triage": triage,
    "fast_path": take_fast_path,
    "think": think,
    "extract_needs": extract_needs,
    "think_again": think,
    "decompose": decompose,
    "plan_tool": plan_tool,
    "validate_call": validate_call,
    "fix_args": fix_args,
    "tool_execute": execute_tool,
    "assess_result": assess_result,
    "error_strategy": choose_strategy,
    "synthesize": synthesize,
    "reopen_card": reopen_card,
}
ROUTES = {"direct": "synthesize", "lookup": "fast_path", "reasoning": "think", "multi_step": "decompose"}
SHORT = ("lookup", "reasoning")  # routes whose parts need no planning


def after_input(state: AgentState) -> str:
    """A doubt is asked; an answered clarification goes on where the work stopped; a new question is triaged."""
    if state.get("clarification"):
        return "synthesize"
    if state["resumed"]:
        return "tool_execute" if state["next_node"] == "tool_execute" else "assess_result"
    return "context_assembler"


def after_triage(state: AgentState) -> str:
    return ROUTES[state["route"] or "multi_step"]


def after_needs(state: AgentState) -> str:
    return "fast_path" if state["subtasks"] else "synthesize"


def after_parts(state: AgentState) -> str:
    return "synthesize" if state.get("clarification") or not state["subtasks"] else "plan_tool"


def after_plan(state: AgentState) -> str:
    if not state.get("current_tool"):
        return "assess_result"
    return "tool_execute" if state["route"] == "reasoning" else "validate_call"


def after_decision(state: AgentState) -> str:
    """Where the result leads; what comes next is planned on the long route only."""
    match state["next_node"]:
        case "plan":
            return "fast_path" if state["route"] in SHORT else "plan_tool"
        case "finish":
            return "think_again" if state["route"] == "reasoning" else "synthesize"
        case "tool_execute" | "error_strategy" | "fix_args" as node:
            return node
    return "synthesize"


def build() -> Graph:
    graph = graph_of(NODES)
    graph.add_edge(START, "image_detection")
    starts = ["context_assembler", "tool_execute", "assess_result", "synthesize"]
    graph.add_conditional_edges("image_detection", after_input, starts)
    graph.add_edge("context_assembler", "triage")
    graph.add_conditional_edges("triage", after_triage, list(ROUTES.values()))
    graph.add_edge("think", "extract_needs")
    graph.add_conditional_edges("extract_needs", after_needs, ["fast_path", "synthesize"])
    graph.add_conditional_edges("decompose", after_parts, ["plan_tool", "synthesize"])
    for node in ("fast_path", "plan_tool"):
        graph.add_conditional_edges(node, after_plan, ["validate_call", "tool_execute", "assess_result"])
    graph.add_conditional_edges("validate_call", after_decision, ["fix_args", "tool_execute"])
    graph.add_edge("fix_args", "tool_execute")
    graph.add_conditional_edges("tool_execute", after_execution, {"result_classify": "assess_result", END: END})
    onward = ["fast_path", "plan_tool", "think_again", "synthesize"]
    graph.add_conditional_edges("assess_result", after_decision, [*onward, "error_strategy"])
    graph.add_conditional_edges("error_strategy", after_decision, [*onward, "tool_execute"])
    graph.add_edge("think_again", "synthesize")
    graph.add_conditional_edges("synthesize", after_answer, ["reopen_card", END])
    graph.add_edge("reopen_card", "tool_execute")
    return graph
