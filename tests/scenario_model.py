"""A scripted model that knows the questions of the guided scenarios, so that their paths can be fixed exactly."""

from docgemma.llm.base import Completion
from tests.scripted import ScriptedLLM

SUGGESTED = {
    "Check FDA warnings": "check_drug_safety",
    "Find patient": "search_patient",
    "Search for patient": "search_patient",
    "Prescribe": "prescribe_medication",
}


class ScenarioLLM(ScriptedLLM):
    """Classifies by the question's first words; says that every result is rich; writes one harmless sentence."""

    name = "scripted"

    def complete(self, prompt, config, *, node, schema=None, on_token=None) -> Completion:
        if not self._queues[node]:
            self.enqueue(node, self._answer(node, prompt.user))
        return super().complete(prompt, config, node=node, schema=schema, on_token=on_token)

    def _answer(self, node: str, user: str):
        asked = {user.rfind(words): name for words, name in SUGGESTED.items()}  # history comes first, the question last
        tool = asked[max(asked)] if max(asked) >= 0 else None
        if node == "tool_select":  # what is left to do is code's to narrow down; more than one choice is left only here
            tool = "check_drug_safety" if "verify" in user else "get_patient_chart" if "chart" in user else tool
        return {
            "intent_classify": {
                "intent": "TOOL_NEEDED" if tool else "DIRECT", "task_summary": "A task.", "suggested_tool": tool,
            },
            "tool_select": {"tool_name": tool},
            "result_classify": {"quality": "success_rich", "brief_summary": "Data returned."},
            "error_handler": {"strategy": "retry_same"},
            "synthesize": "Here is what was found.",
        }[node]  # fmt: skip
