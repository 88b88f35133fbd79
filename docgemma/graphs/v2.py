"""The v2 graph: four routes (direct, look-up, reasoning, multi-step), each as short as the question allows."""

from langgraph.graph import END, START

from docgemma.graphs import Graph, Paths, graph_of
from docgemma.graphs.v1 import entry, planned, route, work
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


def onward(state: AgentState) -> str:
    """What `next_node` means on this route: only the long one plans, only reasoning thinks again."""
    short = {"lookup": {"plan": "fast_path"}, "reasoning": {"plan": "fast_path", "finish": "think_again"}}
    long = {"plan": "plan_tool", "finish": "synthesize", "clarify": "synthesize"}
    node = state["next_node"] or "finish"
    return {**long, **short.get(state["route"] or "", {})}.get(node, node)


def build() -> Graph:
    graph, answer, check = graph_of(NODES), "synthesize", "assess_result"
    start: Paths = {"ask": answer, "new": "context_assembler", "router": check, "tool_execute": "tool_execute"}
    routes: Paths = {"direct": answer, "lookup": "fast_path", "reasoning": "think", "multi_step": "decompose"}
    steps = ["fast_path", "plan_tool", "think_again", answer]
    graph.add_edge(START, "image_detection")
    graph.add_conditional_edges("image_detection", entry, start)
    graph.add_edge("context_assembler", "triage")
    graph.add_conditional_edges("triage", route, routes)
    graph.add_edge("think", "extract_needs")
    graph.add_conditional_edges("extract_needs", work, {"answer": answer, "work": "fast_path"})
    graph.add_conditional_edges("decompose", work, {"answer": answer, "work": "plan_tool"})
    for node in ("fast_path", "plan_tool"):
        graph.add_conditional_edges(node, planned, {"call": "validate_call", "none": check})
    graph.add_conditional_edges("validate_call", onward, ["fix_args", "tool_execute"])
    graph.add_edge("fix_args", "tool_execute")
    graph.add_conditional_edges("tool_execute", after_execution, {"result_classify": check, END: END})
    graph.add_conditional_edges("assess_result", onward, [*steps, "error_strategy"])
    graph.add_conditional_edges("error_strategy", onward, [*steps, "tool_execute"])
    graph.add_edge("think_again", "synthesize")
    graph.add_conditional_edges("synthesize", after_answer, ["reopen_card", END])
    graph.add_edge("reopen_card", "tool_execute")
    return graph
