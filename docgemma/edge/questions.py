"""Training questions with their gold: intent, the plan of calls, and every argument. From templates, seeded."""

import re
from dataclasses import dataclass, field
from typing import Any

from docgemma.edge.lexicon import Lexicon
from docgemma.edge.slots import Slots, subjects
from docgemma.edge.templates import Filled, choose, fill, load

RECORD_TOOLS = ("get_patient_chart", "prescribe_medication", "add_allergy", "save_clinical_note")
ORDER = (
    "search_patient",
    "get_patient_chart",
    "analyze_medical_image",
    "check_drug_safety",
    "check_drug_interactions",
    "search_medical_literature",
    "find_clinical_trials",
    "prescribe_medication",
    "add_allergy",
    "save_clinical_note",
)


@dataclass
class Case:
    """One question and what a perfect system does with it. `plan`: calls in working order; [] for a direct one."""

    question: str
    plan: list[tuple[str, dict[str, Any]]]
    before: str | None = None  # the user's last message
    patient: tuple[str, str] | None = None  # (id, name) of the active patient
    image: bool = False
    found_as: tuple[str, str] | None = None  # (id, name) that a search of this turn returns
    kind: str = field(default="")


def arguments(tool: str, made: Filled, slots: Slots, patient_id: str) -> dict[str, Any]:
    """The gold arguments of a call, from what the slots were filled with."""
    got = made.slots
    if tool == "check_drug_safety":
        return {"drug_name": got["drug"]}
    if tool == "check_drug_interactions":
        return {
            "drug_names": slots.drugs[: slots.count]
            if "drugs" in got
            else [got.get("drug1", slots.drugs[0]), got["drug2"]]
        }
    if tool == "search_medical_literature":
        return {"query": got["topic"].removeprefix("the ")}  # as spans begin
    if tool == "find_clinical_trials":
        return {"condition": got["cond"], "status": got.get("status")}
    if tool == "search_patient":
        return {"name": slots.name}
    if tool == "analyze_medical_image":
        return {"query": made.text}
    if tool == "get_patient_chart":
        return {"patient_id": patient_id}
    if tool == "prescribe_medication":
        return {
            "patient_id": patient_id,
            "medication_name": got.get("drug", slots.drugs[0]),
            "dosage": got["dose"],
            "frequency": got["freq"],
            "notes": got.get("notes"),
        }
    if tool == "add_allergy":
        severity = got.get("sev") or next(
            (item for item in ("mild", "moderate", "severe") if item in made.text.split()), None
        )
        return {"patient_id": patient_id, "substance": got["subst"], "reaction": got["react"], "severity": severity}
    kind = got.get("notetype") or next((item for item in ("SOAP note", "ward round note") if item in made.text), None)
    return {"patient_id": patient_id, "note_type": kind, "note_text": got.get("note") or got["notes_clause"]}


class Questions:
    """Makes cases. Every method draws from the same seeded lexicon."""

    def __init__(self, lexicon: Lexicon):
        self.words = lexicon

    def single(self, tool: str) -> Case:
        """One request for one tool (and the search before it, where the patient is named)."""
        who = self._who_mode(tool)
        slots = Slots(self.words, who)
        pattern = self.pattern(tool, who)
        made = fill(pattern, self.words, slots)
        if (
            tool == "find_clinical_trials"
            and "status" not in made.slots
            and re.search(r"\brecruiting|enrol|ongoing", pattern)
        ):
            made.slots["status"] = None
        patient_id, case = slots.id, Case(made.text, [], image=tool == "analyze_medical_image", kind=tool)
        if who == "pronoun":
            case.patient = (slots.id, slots.name)
            case.before = self.earlier(slots) if self.words.chance(0.85) else None
        if who == "name" and tool in RECORD_TOOLS:
            case.plan.append(("search_patient", {"name": slots.name}))
            case.found_as = (slots.id, "")
        case.plan.append((tool, arguments(tool, made, slots, patient_id)))
        if not case.patient and tool not in RECORD_TOOLS and tool != "search_patient":
            self.distract(case)
        return case

    def direct(self) -> Case:
        kind = "conversation" if self.words.chance(0.3) else "direct"
        made = fill(self.words.pick(load(kind)), self.words, Slots(self.words, "id"))
        case = Case(made.text, [], kind="direct")
        if self.words.chance(0.3):
            self.distract(case, always=True)
        return case

    def reasoning(self) -> Case:
        """A question of clinical judgement; only the v2 graph tells it from a direct one."""
        made = fill(self.words.pick(load("reasoning")), self.words, Slots(self.words, "id"))
        return Case(made.text, [], kind="reasoning")

    def earlier(self, slots: Slots) -> str:
        """What the user may have said before about this patient."""
        slots = _other_drugs(slots, self.words)
        tool = self.words.pick(
            ("search_patient", "get_patient_chart", "get_patient_chart", "prescribe_medication", "check_drug_safety")
        )
        slots.who = self.words.pick(("id", "name"))
        return fill(self.pattern(tool, slots.who), self.words, slots).text

    def distract(self, case: Case, always: bool = False) -> None:
        """Now and then a history and a patient that have nothing to do with the question."""
        if always or self.words.chance(0.22):
            slots = Slots(self.words, self.words.pick(("id", "name")))
            case.before = self.earlier(slots) if self.words.chance(0.6) else self._unrelated()
            if self.words.chance(0.6):
                case.patient = (slots.id, slots.name)

    def _unrelated(self) -> str:
        tool = self.words.pick(
            (
                "check_drug_safety",
                "check_drug_interactions",
                "find_clinical_trials",
                "search_medical_literature",
                "direct",
            )
        )
        return fill(self.words.pick(load(tool)), self.words, Slots(self.words, "id")).text

    def _who_mode(self, tool: str) -> str:
        if tool == "search_patient":
            return "name"
        if tool not in RECORD_TOOLS:
            return "id"
        return self.words.pick(("id", "id", "id", "id", "id", "pronoun", "pronoun", "name", "name"))

    def pattern(self, tool: str, who: str) -> str:
        """A decided pattern that can be filled in this mode: ids cannot stand in for a pronoun."""
        for _ in range(200):
            pattern = subjects(choose(self.words.pick(load(tool)), self.words))
            if tool not in RECORD_TOOLS:
                return pattern
            has_id = re.search(r"\{id2?\}", pattern)
            has_who = re.search(r"\{who|\{whose", pattern)
            if (who == "id" and (has_id or has_who)) or (who != "id" and not has_id and (has_who or who == "pronoun")):
                return pattern
        raise ValueError(f"no pattern of {tool} fits {who}")


def _other_drugs(slots: Slots, lexicon: Lexicon) -> Slots:
    other = Slots(lexicon, slots.who)
    other.id, other.name, other.pronoun = slots.id, slots.name, slots.pronoun
    return other
