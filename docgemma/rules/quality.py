"""How good a result is, from its content: what was found, and whether it is on the point. No model is asked."""

from docgemma.schemas import Quality
from docgemma.state import ToolResult
from docgemma.text.words import plain

CLOSED = ("COMPLETED", "TERMINATED", "WITHDRAWN")
STEM = 6  # letters by which words of a title and a query are compared
# words of a question or query that say nothing of its subject
ABOUT = frozenset(
    "about after against also among and any are between but can case cases clinical compare compared current data "
    "disease effect effects effective effectiveness efficacy enrolling evidence find for from has have help how into "
    "journal latest list literature look meta analysis new non not old open papers patient patients people phase "
    "published randomised randomized recent recruiting research review reviews safety search show some studies study "
    "syndrome systematic than that the their there therapy these this treat treating treatment treatments trial "
    "trials use using versus was were what which who with".split()
)


def quality_of(question: str, result: ToolResult) -> Quality:
    """rich: answers the question. partial: some of it, or only with a caveat. none: nothing that bears on it."""
    tool, data = result["tool_name"], result["result"]
    if result["writes"]:
        return "success_rich"
    if tool == "search_patient":
        return "success_partial" if data["patients"][0].get("guessed") else "success_rich"
    if tool == "get_patient_chart":
        filled = data["conditions"] or data["medications"] or data["labs"] or data["allergies"]
        return "success_rich" if filled else "no_results"
    if tool == "check_drug_interactions":
        return "success_partial" if data["not_checked"] or data["not_covered"] else "success_rich"
    if tool == "analyze_medical_image":
        return "success_rich" if data["confidence"] >= 0.5 else "success_partial"
    return _listed(question, result) if "articles" in data or "trials" in data else "success_rich"


def _listed(question: str, result: ToolResult) -> Quality:
    """Articles or trials: none is about the subject, or one title has all of it, or some are near it."""
    data, args = result["result"], result["args"]
    found = data.get("articles", data.get("trials")) or []
    closed = "trials" in data and found and all(item["status"] in CLOSED for item in found)
    if any(item["demonstration"] for item in found) or (closed and "recruit" in question.casefold()):
        return "success_partial"
    subject = _stems(str(args.get("query") or args.get("condition") or ""))
    if any(subject <= _stems(" ".join([item["title"], *item.get("conditions", [])])) for item in found):
        return "success_rich"
    near = subject & _stems(result["formatted_result"].partition("\n")[2])
    return "success_partial" if near or not subject else "no_results"


def _stems(text: str) -> set[str]:
    words = plain(text).replace("-", " ").replace("/", " ").split()
    return {word[:STEM] for word in words if len(word) > 2 and word not in ABOUT}
