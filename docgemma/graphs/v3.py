"""The v3 reactive graph: one tool at a time, chosen from what is known now; code decides what follows."""

from langgraph.graph import END, START

from docgemma.graphs import Graph, graph_of
from docgemma.nodes.error_handler import handle_failure
from docgemma.nodes.input_assembly import assemble_input
from docgemma.nodes.intent_classify import classify_intent
from docgemma.nodes.result_classify import classify_result
from docgemma.nodes.router import decide_next
from docgemma.nodes.synthesize import synthesize
from docgemma.nodes.tool_execute import execute_tool, reopen_card
from docgemma.nodes.tool_select import select_tool
from docgemma.state import AgentState

NODES = {
    "input_assembly": assemble_input,
    "intent_classify": classify_intent,
    "tool_select": select_tool,
    "tool_execute": execute_tool,
    "result_classify": classify_result,
    "router": decide_next,
    "error_handler": handle_failure,
    "synthesize": synthesize,
    "reopen_card": reopen_card,
}


def after_input(state: AgentState) -> str:
    """A new question is classified; an answered clarification goes on where the work stopped; a doubt is asked."""
    if state.get("clarification"):
        return "router"
    return (state.get("resumed") and state.get("next_node")) or "intent_classify"


def after_intent(state: AgentState) -> str:
    return "synthesize" if state["intent"] == "DIRECT" else "tool_select"


def after_selection(state: AgentState) -> str:
    return "tool_execute" if state.get("current_tool") else "router"


def after_execution(state: AgentState) -> str:
    """A card that waits while another question is answered ends this run; it is shown again after that answer."""
    return END if state.get("held") and not state.get("current_tool") else "result_classify"


def after_answer(state: AgentState) -> str:
    return "reopen_card" if state.get("held") else END


def after_decision(state: AgentState) -> str:
    return state["next_node"] or "synthesize"


def build() -> Graph:
    graph = graph_of(NODES)
    graph.add_edge(START, "input_assembly")
    graph.add_conditional_edges("input_assembly", after_input, ["intent_classify", "router", "tool_execute"])
    graph.add_conditional_edges("intent_classify", after_intent, ["tool_select", "synthesize"])
    graph.add_conditional_edges("tool_select", after_selection, ["tool_execute", "router"])
    graph.add_conditional_edges("tool_execute", after_execution, ["result_classify", END])
    graph.add_edge("result_classify", "router")
    graph.add_conditional_edges("router", after_decision, ["error_handler", "tool_select", "synthesize"])
    graph.add_conditional_edges("error_handler", after_decision, ["tool_select", "synthesize"])
    graph.add_conditional_edges("synthesize", after_answer, ["reopen_card", END])
    graph.add_edge("reopen_card", "tool_execute")
    return graph
