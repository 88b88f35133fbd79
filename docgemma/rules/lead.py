"""The conclusion that leads an answer: drawn by code from the facts of the answer, or none. Pure."""

from collections.abc import Mapping, Sequence

from docgemma.reading.terms import measure_named, measures_in, names
from docgemma.rules import known
from docgemma.rules.chart_entries import UNREMARKABLE, Entry, brief, direction
from docgemma.rules.label_answer import topics_asked
from docgemma.rules.layout import Fact
from docgemma.rules.order_check import CONTRAINDICATED, MAJOR, MODERATE, Finding
from docgemma.rules.refusal import refusals
from docgemma.state import AgentState, Request

VERDICTS = {CONTRAINDICATED: "Contraindicated", MAJOR: "Warning", MODERATE: "Caution"}
SHOWN_BELOW = ("Results to weigh", "Duplicate:")  # findings of a check; the lists below it say them
MOVED = ("This patient is recorded as deceased", "Not among the results:", "Taken together already:")
FEW = 3
Led = tuple[Fact | None, Fact | None]


def conclusion(facts: Sequence[Fact], state: AgentState, checks: Mapping[tuple[str, str], Sequence[Finding]]) -> Led:
    """The fact that leads, None where nothing can be concluded; and the fact that it says whole, which is left out.

    Args:
        facts: of the answer, in order.
        checks: (patient id, drug) -> findings of the order check.
    """
    request, charts = known.request(state), known.charts(state)
    written = [item for item in state.get("tool_results") or [] if item["writes"] and not item["error"]]
    if refusals(request) or len(charts) > 1:
        return None, None
    if written:
        return _moved(facts, written[0]["formatted_result"].split("\n")[0])
    if charts:
        dead = _moved(facts, MOVED[0])
        return dead if dead[0] else _of_checks(facts, state, checks) if checks else _of_chart(facts, request)
    labels, pairs = (known.made(state, name) for name in ("check_drug_safety", "check_drug_interactions"))
    if len(labels) == 1 and not pairs:
        return _of_label(facts, request)
    return _of_pairs(facts, pairs[0]["result"]["interactions"]) if len(pairs) == 1 and not labels else (None, None)


def _moved(facts: Sequence[Fact], start: str) -> Led:
    """The first fact that begins so, as it stands."""
    fact = next((fact for fact in facts if fact.sentence.startswith(start)), None)
    return (fact._replace(text=fact.sentence, title="", alone=""), fact) if fact else (None, None)


def _of_checks(facts: Sequence[Fact], state: AgentState, checks: Mapping[tuple[str, str], Sequence[Finding]]) -> Led:
    """The gravest finding on a drug for the patient; of several as grave, one that rests on a result."""
    found = [(item, drug) for (_, drug), findings in checks.items() for item in findings if item.rank in VERDICTS]
    found = [(item, drug) for item, drug in found if not item.text.startswith(SHOWN_BELOW)]
    if not found:
        return None, None
    worst, drug = min(found, key=lambda pair: (pair[0].rank, not pair[0].first.startswith("latest")))
    fact = next((fact for fact in facts if fact.text == worst.text), None)
    if not fact:
        return None, None
    why = worst.first or worst.text
    why = f"{why[:1].upper()}{why[1:]}"
    if worst.rank != CONTRAINDICATED and "egfr" in why.casefold():
        labels = [item["result"] for item in known.made(state, "check_drug_safety") if item["result"]["drug"] == drug]
        below = [text.rstrip(".") for data in labels for text in data["contraindications"] if names(["egfr"], text)]
        why = f"{why.rstrip('.')}; contraindicated: {below[0]}." if below else why
    name = known.charts(state)[0]["result"]["patient"]["name"]
    return fact._replace(text=f"{VERDICTS[worst.rank]}: {drug} for {name}. {why}", title=""), fact


def _of_chart(facts: Sequence[Fact], request: Request) -> Led:
    """The results that were asked for; else severe allergies and critical results among what is shown."""
    wanted = measures_in(" ; ".join([*request["measures"], request["said"]]))
    shown = [fact for fact in facts if fact.entry and fact.text == fact.entry.short]
    results = [fact for fact in shown if fact.entry and fact.entry.ask in ("labs", "vit")]
    asked = [fact for fact in results if fact.entry and measure_named(fact.entry.name) in wanted]
    if wanted and not asked:
        return _moved(facts, MOVED[1])
    if 0 < len(asked) <= FEW:
        return asked[0]._replace(text=f"{'; '.join(map(_result, asked))}.", title="", alone=""), None
    severe = [fact for fact in shown if fact.entry and fact.entry.ask == "alg" and _is_severe(fact.entry.item)]
    off = [fact for fact in asked or results if fact.entry and fact.entry.item["flag"] not in UNREMARKABLE]
    critical = [fact for fact in off if fact.entry and fact.entry.item["flag"].startswith("critical")]
    listed = critical or (off if "chart" not in request["asks"] and not severe else [])
    parts = [f"Severe allergy: {'; '.join(map(_allergy, severe))}."] if severe else []
    if listed:
        more = f"; and {len(listed) - FEW} more below" if len(listed) > FEW else ""
        parts.append(f"Outside their range: {'; '.join(map(_result, listed[:FEW]))}{more}.")
    if parts:
        return [*severe, *listed][0]._replace(text=" ".join(parts), title="", alone=""), None
    return _moved(facts, MOVED[2])


def _result(fact: Fact) -> str:
    item = fact.entry.item if fact.entry else {}
    return ", ".join(filter(None, [brief(item), item["flag"], direction(item).casefold()]))


def _allergy(fact: Fact) -> str:
    item = fact.entry.item if fact.entry else {}
    return f"{item['substance']} ({item['reaction']})" if item["reaction"] else str(item["substance"])


def _is_severe(item: Entry) -> bool:
    return bool(item["active"]) and "severe" in (item["severity"], item.get("criticality"))


def _of_label(facts: Sequence[Fact], request: Request) -> Led:
    """What the label says to the topic that was asked for, where that is one statement; else its boxed warning."""
    for topic in topics_asked(request):
        titled = [fact for fact in facts if names(topic["match"], fact.title)]
        boxed = [fact for fact in facts if "boxed warning" in fact.sentence and names(topic["match"], fact.sentence)]
        fitting = [fact for fact in facts if names([topic["name"], *topic["match"]], fact.sentence)]
        if len(titled) == 1 or (fitting and not titled and not boxed):
            return _moved(facts, [*titled, *fitting][0].sentence)
    return _moved(facts, next((fact.sentence for fact in facts if "boxed warning" in fact.sentence), "\n"))


def _of_pairs(facts: Sequence[Fact], listed: Sequence[Entry]) -> Led:
    """The gravest interaction, and every pair that has one as grave."""
    if not listed:
        return _moved(facts, facts[0].sentence) if len(facts) == 1 else (None, None)
    worst = listed[0]["severity"].lower()
    pairs = "; ".join(" with ".join(item["drugs"]) for item in listed if item["severity"].lower() == worst)
    said = f"{worst.capitalize()} interaction" if worst in ("contraindicated", "major", "moderate", "minor") else ""
    return facts[0]._replace(text=f"{said or 'Interaction in the label'}: {pairs}.", title="", alone=""), None
