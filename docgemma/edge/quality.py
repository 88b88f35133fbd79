"""How good a result is, where its content settles it: the edge model is asked about the rest only.

A chart or a label either speaks of what was asked or does not; an interaction check knows which drugs it could not
check. Whether an article or a trial is to the point is a judgement, unless every word of the subject stands in its
title or none does anywhere.
"""

import re

from docgemma.edge.answers import ALL, UNSEEN, answer
from docgemma.rules.candidates import WRITES
from docgemma.state import ToolResult

CLOSED = ("COMPLETED", "TERMINATED", "WITHDRAWN")


# words of a question or query that say nothing of its subject
_ABOUT = (
    "about after against also among and any are between but can case cases clinical compare compared current data "
    "disease effect effects effective effectiveness efficacy enrolling evidence find for from has have help how into "
    "journal latest list literature look meta analysis new non not old open papers patient patients people phase "
    "published randomised randomized recent recruiting research review reviews safety search show some studies study "
    "syndrome systematic than that the their there therapy these this treat treating treatment treatments trial trials "
    "use using versus was were what which who with"
)
ABOUT = frozenset(_ABOUT.split())


def judged_quality(result: ToolResult, intended: str) -> str:
    """What a perfect judge calls an invented list of results that was made to be `intended`. For training texts."""
    open_or_rich = result["tool_name"] == "find_clinical_trials" and intended == "success_partial"
    return "success_rich" if open_or_rich else intended


def settled_quality(question: str, result: ToolResult) -> str | None:
    """rich: answers the question. partial: some of it, or only with a caveat. none: nothing that bears on it.

    Returns:
        The class, or None where it takes a judgement.
    """
    tool, data = result["tool_name"], result["result"]
    if tool in WRITES:
        return "success_rich"
    if tool == "search_patient":
        return _search(data)
    if tool == "get_patient_chart":
        empty = not (data["conditions"] or data["medications"] or data["labs"] or data["allergies"])
        return "no_results" if empty else _absent(answer(question, [result], ALL), "recorded in the chart")
    if tool == "check_drug_safety":
        return _absent(answer(question, [result], ALL), "does not mention")
    if tool == "check_drug_interactions":
        if not data["not_checked"]:
            return "success_rich"
        return "success_partial" if data["interactions"] or data["none_listed"] else "no_results"
    if tool == "analyze_medical_image":
        return "success_rich" if data["confidence"] >= 0.5 else "success_partial"
    return _listed(question, tool, data) or _to_the_point(result)


def _listed(question: str, tool: str, data: dict) -> str | None:
    """What articles or trials are worth whatever they are about."""
    found = data.get("articles", data.get("trials"))
    if not found:
        return "no_results"
    if any(item["demonstration"] for item in found):
        return "success_partial"
    closed = tool == "find_clinical_trials" and all(item["status"] in CLOSED for item in found)
    return "success_partial" if closed and _open(question) else None


def _to_the_point(result: ToolResult) -> str | None:
    """Rich where one title has every word of the subject, none where no record has any of them; else a judgement."""
    args, data = result["args"], result["result"]
    subject = _stems(str(args.get("query") or args.get("condition") or ""))
    if not subject:
        return None
    found = data.get("articles", data.get("trials"))
    if any(subject <= _stems(" ".join([item["title"], *item.get("conditions", [])])) for item in found):
        return "success_rich"
    if not subject & _stems(result["formatted_result"].partition("\n")[2]):
        return "no_results"
    return None


def _stems(text: str) -> set[str]:
    words = re.findall(r"[^\W_]{3,}", text.casefold())
    return {word[:6] for word in words if word not in ABOUT}


def _search(data: dict) -> str:
    if not data["patients"]:
        return "no_results"
    return "success_partial" if data["patients"][0]["guessed"] else "success_rich"


def _absent(text: str, mark: str) -> str:
    if UNSEEN in text:
        return "success_partial"
    return (
        "success_partial"
        if mark in text and any(part.startswith(("No ", "What was found")) for part in text.split(". "))
        else "success_rich"
    )


def _open(question: str) -> bool:
    return "recruit" in question.lower() or "enrol" in question.lower()
