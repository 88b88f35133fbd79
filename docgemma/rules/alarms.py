"""What a message tells of a patient that may be an effect of what they take: symptoms, values, mishaps. Pure."""

from collections.abc import Mapping
from typing import Any

from docgemma.reading.terms import measure_named
from docgemma.rules.chart_entries import Chart, lines_of, notes_naming, result_told
from docgemma.rules.typed import typed_values
from docgemma.state import AgentState
from docgemma.text.told import without
from docgemma.text.words import affirmed, clinical

PRESSURE, PARTS = "blood pressure", ("systolic", "diastolic")
URGENT = "Urgent: "
NOW = "This needs a clinician now."
EFFECT = "It may be an effect of what is taken: have it assessed."
GAP = 4  # words that "*" stands for
STATED = "For what you wrote ("  # of what rules say of a medicine that is taken


def alarms_told(said: str) -> list[Mapping[str, Any]]:
    """The entries of `data/clinical/alarms.yaml` that a message tells by a phrase or a value, and does not deny."""
    told = without(affirmed(said), clinical("alarms")["otherwise"])
    asked = [f" {words} " for words in clinical("alarms")["asking"]]  # "does he have encephalopathy" tells none
    aims = set(told.split()) & set(clinical("alarms")["aims"])
    typed = [] if aims else [(name, [float(part) for part in value.split("/")]) for name, value in typed_values(said)]
    values = [one for name, parts in typed for one in zip(PARTS if name == PRESSURE else [name], parts, strict=False)]
    return [
        alarm
        for alarm in clinical("alarms")["alarms"]
        if any(_says(one, told) and not any(f"{ask}{one} " in told for ask in asked) for one in alarm["said"])
        or any(low <= value <= high for name, value in values for low, high in alarm.get("values", {}).get(name, []))
    ]


def _says(phrase: str, told: str) -> bool:
    """Whether a phrase stands in a text, "*" for up to four words of one clause: "stopped * suddenly"."""
    first, *rest = phrase.split(" * ")
    at = told.find(f" {first} ")
    while at >= 0 and rest:
        behind, end = told[at + len(first) + 1 :], 0
        for part in rest:
            found = behind.find(f" {part} ", end)
            if found < 0 or len(behind[end:found].split()) > GAP or set(behind[end:found]) & set(",;.?!"):
                break
            end = found + len(part) + 1
        else:
            return True
        at = told.find(f" {first} ", at + 1)
    return at >= 0


def subject_of(state: AgentState) -> list[str]:
    """The name of the alarm that led the answer before, "smoking that stops"; [] where none did."""
    lead = state.get("lead") or ""
    return [lead.removeprefix(URGENT).removeprefix(STATED).partition(". ")[0].partition("): ")[0]
            ] * lead.startswith((URGENT, STATED))  # fmt: skip


def alarm_line(alarm: Mapping[str, Any], warnings: list[str], chart: Chart) -> str:
    """One alarm with what warns of it, labels and a note, and the latest results; "" where nothing warns of it."""
    notes = notes_naming(chart, alarm.get("noted", []))
    wanted = alarm.get("results", [])
    mine = [result_told(line) for line in lines_of(chart, "labs", "vit") if measure_named(line.name) in wanted]
    latest = f"Latest recorded, from before this: {'; '.join(mine)}. "
    found = "; ".join([*warnings[:4], *notes[:1]]).rstrip(".")
    warned = f"What warns of it: {found}. " if found else ""
    if now := alarm.get("always") or alarm.get("do"):
        return f"{URGENT}{alarm['name']}. {now} {warned}{latest if mine else ''}".strip()
    if "mild" in alarm:
        return f"{STATED}{alarm['name']}): {found}. {EFFECT}" if found else ""
    results = latest if mine else f"Not recorded: {', '.join(wanted)}. " if wanted else ""
    return f"{URGENT}{alarm['name']}. {warned}{results}{NOW}" if found else ""
