"""What a perfect answer says: whole sentences of the evidence, the critical and the asked ones first, nothing else."""

import re

from docgemma.edge.evidence import LABEL, RECORD, Topic, shown_lines, topics
from docgemma.rules.candidates import WRITES
from docgemma.state import ToolResult

MAX_PARTS = 4  # of a chart
CUT = re.compile(r"^…$|further findings not shown")
UNSEEN = "may stand in the rest"
TOLD = 0.7  # of a sentence's words: it is said already
ALL = 100_000  # characters: a result as it is
FIRST = ("check_drug_interactions", "check_drug_safety", "analyze_medical_image")


def answer(question: str, results: list[ToolResult], limit: int, beside: frozenset[int] = frozenset()) -> str:
    """The gold answer to a question from this turn's results, as the model sees them (`limit` characters each).

    Args:
        beside: places of results that do not bear on the question at all.
    """
    return " ".join(findings(question, results, limit, beside))


def findings(question: str, results: list[ToolResult], limit: int, beside: frozenset[int] = frozenset()) -> list[str]:
    """The same, sentence by sentence."""
    skip = {id(results[at]) for at in beside}
    done = [item for item in results if not item["error"]]
    later = {item["tool_name"] for item in done} - {"search_patient"}
    told = [item for item in done if item["tool_name"] != "search_patient" or not later]
    told.sort(key=lambda item: _rank(item))
    brief = len(told) > 1
    parts = []
    for item in told:
        parts += [_nothing(item)] if id(item) in skip else sentences(question, item, limit, brief)
    return list(dict.fromkeys(parts))


def mended(text: str, question: str, results: list[ToolResult], beside: frozenset[int]) -> str:
    """An answer with what was asked for, found and left out; or, where it repeats a finding in other words than the
    source's, the findings themselves: a small model that does not copy a warning whole may join two of them."""
    parts = findings(question, results, ALL, beside)
    said, flat = set(_words(text)), _flat(text)
    exact = [_flat(part) in flat for part in parts]
    told = [bool(words := _words(part)) and sum(word in said for word in words) >= TOLD * len(words) for part in parts]
    if any(near and not same for near, same in zip(told, exact, strict=True)):
        return "\n".join(parts)
    return "\n".join([text, *(part for part, same in zip(parts, exact, strict=True) if not same)])


def _flat(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]{2,}", text.casefold())


def _nothing(result: ToolResult) -> str:
    args = result["args"]
    return f"No record that was found is about {args.get('query') or args.get('condition') or 'this'}."


def _rank(result: ToolResult) -> int:
    if result["tool_name"] in FIRST:
        return 0
    return 2 if result["tool_name"] in WRITES else 1


def sentences(question: str, result: ToolResult, limit: int, brief: bool) -> list[str]:
    lines = shown_lines(result["formatted_result"], question, limit)
    maker = {
        "get_patient_chart": _chart,
        "check_drug_safety": _safety,
        "check_drug_interactions": _interactions,
        "search_medical_literature": _records,
        "find_clinical_trials": _records,
        "analyze_medical_image": _image,
    }.get(result["tool_name"])
    if maker is None:
        return [whole(line) for line in lines[: 2 if result["tool_name"] == "search_patient" else 1]]
    return maker(question, lines, brief)


def whole(line: str) -> str:
    """A line as a sentence; where it was cut ("…"), its whole sentences, else its whole words."""
    if not line.endswith("…"):
        return line
    line = line.rstrip(" …")
    stops = [found.end() for found in re.finditer(r"[.;](?= |$)", line)]
    if stops and stops[-1] > 40:
        return re.sub(r";$", ".", line[: stops[-1]])
    return line + "."


def _safety(question: str, lines: list[str], brief: bool) -> list[str]:
    parts = [whole(lines[0])]
    asked = topics(question, LABEL)
    for topic in asked:
        found = [line for line in lines[1:] if topic.says.search(line)]
        if found:
            parts += [whole(line) for line in found[: 1 if brief else 2]]
        elif topic.name not in ("interactions", "contraindications") and not topic.says.search(lines[0]):
            parts.append(f"What was found does not mention {topic.name}.")
    if len(parts) == 1 and not brief:
        parts += [whole(line) for line in lines[1:2] if "contraindication:" in line or "warning:" in line]
    return list(dict.fromkeys(parts))[:3]


def _interactions(question: str, lines: list[str], brief: bool) -> list[str]:
    pairs = [line for line in lines if "interaction." in line]
    others = [line for line in lines if line not in pairs and not line.startswith("…")]
    return [whole(line) for line in [*pairs[: 2 if brief else 3], *others[: 1 if pairs else 2]]]


def _records(question: str, lines: list[str], brief: bool) -> list[str]:
    """Articles and trials: title and identification, the first with what it found."""
    listed = [line for line in lines if re.search(r"\([^()]*\d[^()]*\)", line)]
    caveats = [line for line in lines if line not in listed and line != "…"]
    parts = []
    for at, line in enumerate(listed[: 1 if brief else 2]):
        head = re.match(r".*?\([^()]*(?:\d{4}|NCT|DEMO)[^()]*\)", line)
        parts.append(whole(line) if at == 0 or not head else head.group() + ".")
    return [*parts, *(whole(line) for line in caveats[:2])]


def _image(question: str, lines: list[str], brief: bool) -> list[str]:
    keep = [line for line in lines if line.startswith(("Impression", "Image finding"))][: 1 if brief else 2]
    return keep + [line for line in lines if line.startswith("Specialist")]


def _chart(question: str, lines: list[str], brief: bool) -> list[str]:
    asked = topics(question, RECORD)
    died = [line for line in lines if line.startswith("This patient is recorded as deceased")]
    if not asked:
        return died + _overview(lines, brief)
    parts = died
    for topic in asked[:3]:
        parts += _asked(topic, lines)
    return list(dict.fromkeys(parts))[:MAX_PARTS]


def _asked(topic: Topic, lines: list[str]) -> list[str]:
    """What the chart says on one thing; what it does not say is said to be absent."""
    found = [line for line in lines if topic.says.search(line) and not line.startswith(("Patient ", "…"))]
    if topic.name == "problems":
        found = [line for line in found if line.startswith("Active")] or found
    if topic.name == "medications":
        found = [line for line in found if not line.startswith("Past")] or found
    if not found and any(CUT.search(line) for line in lines):
        return [f"The chart is longer than what was read here; {topic.name} {UNSEEN}."]
    if not found:
        return [f"No {topic.name} {'are' if topic.name.endswith('s') else 'is'} recorded in the chart."]
    return [_list(found)] if len(found) > 1 else [plain(found[0])]


def _overview(lines: list[str], brief: bool) -> list[str]:
    groups = ("Allergy", "Abnormal lab", "Active problem", "Active medication")
    parts = [lines[0]] if not brief else []
    for group in groups[: 2 if brief else 4]:
        found = [line for line in lines if line.startswith(group)]
        if found:
            parts.append(_list(found[:4]) if len(found) > 1 else plain(found[0]))
    parts += [line for line in lines if line.startswith(("No allergies", "No known allergies"))]
    return (parts or lines[:2])[:MAX_PARTS]


def _list(lines: list[str]) -> str:
    """Lines of one kind as one sentence: "Allergy: a (rash); b." Mixed kinds stay apart."""
    heads = {line.partition(": ")[0] for line in lines}
    if len(heads) != 1 or not all(": " in line for line in lines):
        return " ".join(plain(line) for line in lines[:4])
    head = heads.pop()
    items = "; ".join(whole(line).partition(": ")[2].rstrip(".") for line in lines[:6])
    return f"{_plural(head)}: {items}."


def _plural(head: str) -> str:
    return {"Allergy": "Allergies", "Past allergy": "Past allergies"}.get(
        head, head + ("" if head.endswith("s") or "(" in head else "s")
    )


def plain(line: str) -> str:
    return whole(line)
