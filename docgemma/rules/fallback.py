"""What is said where the model says nothing usable, and what must be said whatever the model says.

`ensure_critical` adds to an answer each boxed warning, contraindication, major interaction, allergy conflict and
unavailable source of the turn that it does not mention: a lost warning is a defect.
"""

import re
from collections.abc import Iterable

from docgemma.errors import RETRYABLE
from docgemma.rules import known
from docgemma.rules.drugs import DrugNames
from docgemma.rules.errors import ERROR_TEMPLATES
from docgemma.rules.safety import check_order_allergies
from docgemma.state import AgentState, ToolResult

NOTHING = (
    "I could not find an answer to this in the available information. Please rephrase the question or add details."
)
MAX_LINES = 14
LINE_CHARS = 400
CONTRAINDICATIONS = 6  # lines of a label that are added, as many as its report shows
CRITICAL = re.compile(
    r"boxed warning|contraindicat|major interaction|^allergy: |critically |not checked|was not found|"
    r"^recorded |^prescribed |^saved |not recorded|found patient|impression of",
    re.IGNORECASE,
)
NOT_MAJOR = frozenset({"minor", "moderate"})  # every other severity, unknown words included, counts as major
UNAVAILABLE = re.compile(
    r"unavailable|not available|unable|could not|couldn['’]t|cannot|not found|no results|busy|temporar|failed|"
    r"not possible|"
    r"not completed|not permitted",
    re.IGNORECASE,
)
ABOUT_INTERACTION = re.compile(
    r"interact|contraindicat|avoid|risk|major|bleed|increas|caution|"
    r"not be (?:used|taken|combined)",
    re.I,
)
AGAINST = re.compile(r"contraindicat|avoid|must not|should not|not be (?:used|given|taken)|do not")
NOT_DONE = re.compile(  # of the entry itself: "allergies are not recorded" is another matter
    r"\b(?:order|prescription|entry|request)\b[^.\n]{0,60}?"
    r"\b(?:not recorded|reject|declin|not (?:been )?(?:saved|prescribed|added|written|placed)|cancel)",
    re.IGNORECASE,
)
OFFLINE = "The live service could not be reached; this is from the offline snapshot."


def answer_from_evidence(state: AgentState) -> str:
    """The answer that code writes: critical findings first, then the rest, then what was unavailable. Never empty."""
    if question := state.get("clarification"):
        return question["question"]
    lines = [line for result in known.succeeded(state) for line in result["formatted_result"].splitlines()]
    image = (state.get("image_findings") or {}).get("formatted") or ""
    lines = known.unique(_clip(line.strip()) for line in [*image.splitlines(), *lines])
    first = [line for line in lines if CRITICAL.search(line)]
    ordered = [*first, *(line for line in lines if line not in first)]
    kept = ordered[:MAX_LINES]
    if len(ordered) > len(kept):
        kept.append(f"{len(ordered) - len(kept)} further findings not shown.")
    return "\n".join([*kept, *unavailable_lines(state)]) or NOTHING


def unavailable_lines(state: AgentState) -> list[str]:
    """What could not be done in this turn, one clear line each, in the order it happened."""
    results = state.get("tool_results") or []
    done = {(item["tool_name"], str(item["args"])) for item in results if not item["error"]}
    done_tools = {item["tool_name"] for item in results if not item["error"]}
    lines = list(state.get("error_messages") or [])
    named = " ".join(lines)
    for item in results:
        if not item["error"] or (item["tool_name"], str(item["args"])) in done:
            continue
        if item["tool_name"] in done_tools and item["error_type"] in RETRYABLE:
            continue  # a later try went through
        final = _final(item)
        if item["tool_label"] not in named and final not in lines:
            lines.append(final)
    return known.unique(lines)


def ensure_critical(answer: str, state: AgentState, dictionary: DrugNames | None = None) -> str:
    """The answer, with every critical line of this turn's evidence that it does not mention appended.

    Args:
        answer: after grounding; may be empty.
        state: of the turn.
        dictionary: lets a brand name be compared with an allergy; without it names are compared as written.
    """
    lines = [
        *(line for item in known.succeeded(state) for line in _critical_lines(item, answer)),
        *(line for line in _conflicts(state, dictionary) if not _mentions_conflict(answer, line)),
        *(line for line in unavailable_lines(state) if not _says_unavailable(answer, line, state)),
    ]
    lost = [line for line in known.unique(lines) if line.casefold() not in answer.casefold()]
    return "\n".join([part for part in (answer.strip(), *lost) if part])


def _critical_lines(item: ToolResult, answer: str) -> Iterable[str]:
    """Lines of one result that the answer must carry and does not."""
    data, text = item["result"], answer.casefold()
    if item["tool_name"] == "check_drug_safety":
        yield from _label_lines(item, text)
    if item["tool_name"] == "check_drug_interactions":
        yield from _interaction_lines(item, answer)
    if data.get("decision") == "rejected" and not NOT_DONE.search(answer):
        yield item["formatted_result"]
    for measured in data.get("labs") or []:
        if str(measured.get("flag", "")).startswith("critically") and measured["name"].casefold() not in text:
            yield next(_lines_with(item, measured["name"], "critically"), "")
    if data.get("fell_back") and not re.search(r"offline|snapshot", answer, re.IGNORECASE):
        yield OFFLINE


def _label_lines(item: ToolResult, text: str) -> Iterable[str]:
    data = item["result"]
    names = {
        str(name).casefold() for name in (data.get("drug"), data.get("asked"), *data.get("brand_names", [])) if name
    }
    named = any(name in text for name in names)
    if data.get("has_boxed_warning") and not (named and re.search(r"boxed warning|black[\s-]box", text)):
        yield from list(_lines_with(item, "boxed warning"))[:1]
    said = " ".join(part for part in re.split(r"(?<=[.!?])\s|\n", text) if AGAINST.search(part)) if named else ""
    for line in list(_lines_with(item, "contraindication:"))[:CONTRAINDICATIONS]:
        if not _told(line.partition("contraindication:")[2], said):
            yield line


def _told(finding: str, said: str) -> bool:
    """Whether half of a finding's own words, and all of its numbers, stand in what is said: in any order."""
    finding = finding.partition("(")[0]
    words, numbers = _stems(finding), set(re.findall(r"\d+", finding))
    return 2 * len(words & _stems(said)) >= max(len(words), 1) and numbers <= set(re.findall(r"\d+", said))


def _stems(text: str) -> set[str]:
    """Beginnings of the words that carry meaning."""
    return {word[:6] for word in re.findall(r"[^\W\d_]{4,}", text.casefold())}


def _interaction_lines(item: ToolResult, answer: str) -> Iterable[str]:
    data = item["result"]
    asked = dict(zip(data.get("drugs", []), data.get("asked", []), strict=False))
    for pair in data.get("interactions") or []:
        if str(pair["severity"]).casefold() in NOT_MAJOR:
            continue
        names = [{name.casefold(), str(asked.get(name, name)).casefold()} for name in pair["drugs"]]
        told = ABOUT_INTERACTION.search(answer) and all(
            any(part in answer.casefold() for part in name) for name in names
        )
        if not told:
            line = next(_lines_with(item, *pair["drugs"], "interaction"), "")
            yield line or f"{' with '.join(pair['drugs']).capitalize()}: {pair['severity']} interaction."
    for name in data.get("not_checked") or []:
        if not re.search(
            rf"{re.escape(name)}.{{0,80}}\bnot\b|\bnot\b.{{0,80}}{re.escape(name)}", answer, re.IGNORECASE
        ):
            yield next(_lines_with(item, name, "not checked"), "")


def _conflicts(state: AgentState, dictionary: DrugNames | None) -> list[str]:
    """Drugs of the question that the chart of this turn says the patient is allergic to."""
    asked = known.entities(state)["drug_mentions"]
    found = []
    for item in known.succeeded(state):
        allergies = [entry for entry in item["result"].get("allergies") or [] if entry.get("active", True)]
        for drug in asked if allergies else []:
            found += check_order_allergies(drug, allergies, dictionary)
    return found


def _mentions_conflict(answer: str, line: str) -> bool:
    substance = re.search(r"Allergy to (.+?)(?: \(|[.,:;])", line)
    return bool(
        substance and substance[1].casefold() in answer.casefold() and re.search(r"allerg", answer, re.IGNORECASE)
    )


def _says_unavailable(answer: str, line: str, state: AgentState) -> bool:
    """Whether the answer says in its own words that a source was not available."""
    labels = [item["tool_label"] for item in state.get("tool_results") or [] if item["tool_label"] in line]
    entities = [
        str(item["details"].get("entity")) for item in state.get("tool_results") or [] if item["details"].get("entity")
    ]
    named = [name for name in [*labels, *entities] if name.casefold() in line.casefold()]
    return any(
        UNAVAILABLE.search(part) and name.casefold() in part.casefold()
        for name in named
        for part in re.split(r"(?<=[.!?])\s|\n", answer)
    )


def _lines_with(item: ToolResult, *words: str) -> Iterable[str]:
    for line in item["formatted_result"].splitlines():
        if all(word.casefold() in line.casefold() for word in words):
            yield _clip(line.strip())


def _final(item: ToolResult) -> str:
    """An error's text once no retry follows: it does not promise one."""
    if item["error_type"] in RETRYABLE and "retry" in (item["error"] or ""):
        return ERROR_TEMPLATES["max_retries"].format(tool_label=item["tool_label"])
    return item["error"] or ERROR_TEMPLATES["generic"].format(tool_label=item["tool_label"])


def _clip(line: str) -> str:
    """Bounded, cut at the end of a sentence where there is one."""
    if len(line) <= LINE_CHARS:
        return line
    head = line[: LINE_CHARS - 2]
    stop = head.rfind(". ")
    return (head[: stop + 1] if stop > LINE_CHARS // 2 else head.rsplit(" ", 1)[0]) + " …"
