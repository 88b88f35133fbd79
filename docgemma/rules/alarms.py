"""What a message tells of a patient that may be an effect of what they take: symptoms, values, mishaps. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from docgemma.reading.terms import measure_named
from docgemma.rules.chart_entries import Chart, lines_of, notes_naming, result_told
from docgemma.rules.typed import typed_values
from docgemma.state import AgentState
from docgemma.text.told import without
from docgemma.text.words import affirmed, clinical, listed

PRESSURE, PARTS = "blood pressure", ("systolic", "diastolic")
URGENT = "Urgent: "
NOW = "This needs a clinician now."
NEAR = 4  # words in which a relative stands before a symptom
EFFECT = "It may be an effect of what is taken: have it assessed."
STATED = "For what you wrote ("  # of what rules say of a medicine that is taken


def alarms_told(said: str) -> list[Mapping[str, Any]]:
    """The entries of `data/clinical/alarms.yaml` that a message tells by a phrase or a value, and does not deny."""
    told = without(affirmed(said), clinical("alarms")["otherwise"])
    asked = tuple(f" {words} " for words in clinical("alarms")["asking"])  # "does he have encephalopathy" tells none
    aims = set(told.split()) & set(clinical("alarms")["aims"])
    typed = [] if aims else [(name, [float(part) for part in value.split("/")]) for name, value in typed_values(said)]
    values = [one for name, parts in typed for one in zip(PARTS if name == PRESSURE else [name], parts, strict=False)]
    return [
        alarm
        for alarm in clinical("alarms")["alarms"]
        if any(_is_told(told[:at], asked) for one in alarm["said"] for at in _places(one, told))
        or any(low <= value <= high for name, value in values for low, high in alarm.get("values", {}).get(name, []))
    ]


def _is_told(before: str, asked: tuple[str, ...]) -> bool:
    """Whether what stands behind these words is told of the patient: it is not asked, nor a relative's: "wife had"."""
    words = [word.removesuffix("'s") for word in before.split()[-NEAR:]]
    relatives = listed("request_words", "others") - listed("request_words", "colleagues", "caring")
    at = max((at for at, word in enumerate(words) if word in relatives), default=len(words))
    theirs = at < len(words) and not {*words[at + 1 :]} & listed("request_words", "persons", "reporting")
    asks = words[-1:] in (["have"], ["get"]) and {"does", "did", "do"} & {*words}  # "does volkov have encephalopathy"
    return not (before.endswith(asked) or asks or theirs)


def _places(phrase: str, told: str) -> list[int]:
    """Where a phrase stands as whole words, "*" for up to four words without a mark between them: "stopped * suddenly".
    A pattern is compiled only where the phrase begins in the text: there are a thousand, and few do."""
    parts = phrase.split(" * ")
    whole = " (?:[^ ;,.?!]+ ){0,4}".join(map(re.escape, parts)) if f" {parts[0]} " in told else ""
    return [found.start() + 1 for found in re.finditer(f" {whole} ", told)] if whole else []


def subject_of(state: AgentState) -> list[str]:
    """The name of the alarm that led the answer before, "smoking that stops"; [] where none did."""
    ends = ((URGENT, ". "), (STATED, "): "))
    lead = state.get("lead") or ""
    return [lead.removeprefix(start).partition(end)[0] for start, end in ends if lead.startswith(start)]


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
