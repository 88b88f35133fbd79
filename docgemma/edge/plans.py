"""Requests of several steps: clauses joined in a sentence; the order of work is lookup, reading, knowledge, writes."""

import re
from functools import cache

from docgemma.edge.lexicon import Lexicon
from docgemma.edge.questions import ORDER, RECORD_TOOLS, Case, Questions, arguments
from docgemma.edge.slots import Slots, subjects
from docgemma.edge.templates import choose, fill, load
from docgemma.rules.candidates import WRITES

KNOWLEDGE = ("check_drug_safety", "check_drug_interactions", "search_medical_literature", "find_clinical_trials")


@cache
def clauses() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for line in load("clauses"):
        tool, _, text = line.partition(": ")
        found.setdefault(tool, []).append(text)
    return {tool: tuple(items) for tool, items in found.items()}


@cache
def joints() -> dict[int, tuple[str, ...]]:
    return {int(line.split(" | ")[0]): tuple(line.split(" | ")[1:]) for line in load("joints")}


class Plans:
    """Makes cases of two and three clauses, and single ones with a wish that something is not done."""

    def __init__(self, lexicon: Lexicon, questions: Questions):
        self.words, self.questions = lexicon, questions

    def several(self) -> Case:
        tools = self._tools()
        who = self._who(tools)
        slots = Slots(self.words, who)
        case = Case("", [], image="analyze_medical_image" in tools, kind="several")
        if who == "name" and "search_patient" not in tools:
            case.plan.append(("search_patient", {"name": slots.name}))
        texts: list[str] = []
        spoken: str | None = None  # the drug that "it" would mean
        for tool in tools:
            own = slots if tool in (*RECORD_TOOLS, "search_patient") else Slots(self.words, who)
            own.drugs = self.words.drugs(5)  # another one for each clause, unless "it" is meant
            if spoken and (tool != "prescribe_medication" or self.words.chance(0.6)) and self.words.chance(0.5):
                own.drugs[0] = spoken
            own.it = bool(spoken) and own.drugs[0] == spoken
            made = fill(self._clause(tool, slots, own.it), self.words, own, noise=False)
            spoken = own.drugs[0] if tool == "check_drug_safety" else spoken
            if tool == "search_patient":
                slots.named = True
            case.plan.append((tool, arguments(tool, made, _pairs(own), slots.id)))
            texts.append(made.text)
        case.question = self._join(texts)
        self._people(case, slots, who)
        return case

    def against_chart(self) -> Case:
        """One drug against what the patient takes: the chart is read first."""
        who = self.words.pick(("id", "id", "name", "pronoun"))
        slots = Slots(self.words, who)
        made = fill(subjects(choose(self.words.pick(load("chart_interactions")), self.words)), self.words, slots)
        case = Case(made.text, [], kind="against_chart")
        if who == "name":
            case.plan.append(("search_patient", {"name": slots.name}))
        case.plan.append(("get_patient_chart", {"patient_id": slots.id}))
        case.plan.append(("check_drug_interactions", {"drug_names": [slots.drugs[0], slots.drugs[1]]}))
        self._people(case, slots, who)
        return case

    def negated(self) -> Case:
        """ "Don't order anything yet, check X": what is refused is not done."""
        lines = [line.split(" | ", 1) for line in load("negations")]
        refused, pattern = self.words.pick(lines)
        case = self.questions.single(
            self.words.pick([tool for tool in (*KNOWLEDGE, "get_patient_chart") if tool != refused])
        )
        wish = choose(pattern, self.words)
        if self.words.chance(0.7):
            joint = self.words.pick((", ", "; ", " - ", ". ", ", just ", ": "))
            case.question = (
                f"{wish}{joint}{case.question[:1].lower() + case.question[1:] if joint != '. ' else case.question}"
            )
        else:
            case.question = f"{case.question.rstrip('.?! ')}{self.words.pick((', ', '; ', ' - ', '. '))}{wish}"
        case.kind = "negated"
        return case

    def _tools(self) -> list[str]:
        """What is asked for, as it is worded: a record step first or none, knowledge, perhaps a write."""
        words = self.words
        shape = words.rng.random()
        if shape < 0.32:
            chosen = [*words.pick((["search_patient", "get_patient_chart"], ["search_patient"], ["get_patient_chart"]))]
            rest = words.rng.sample([*KNOWLEDGE, *WRITES], 2 if words.chance(0.25) else 1)
        elif shape < 0.55:
            chosen, rest = ["search_patient", "get_patient_chart"], []
        elif shape < 0.75:
            chosen, rest = [], words.rng.sample(KNOWLEDGE, words.pick((2, 2, 2, 3)))
        elif shape < 0.95:
            chosen, rest = [], [words.pick(KNOWLEDGE), words.pick(WRITES)]
        else:
            chosen, rest = ["analyze_medical_image"], [words.pick(KNOWLEDGE)]
        if len(chosen) == 2 and not rest and words.chance(0.35):
            rest = [words.pick((*KNOWLEDGE, *WRITES))]
        known = [tool for tool in rest if tool in KNOWLEDGE]
        return [*chosen, *known, *(tool for tool in ORDER if tool in rest and tool not in known)]

    def _who(self, tools: list[str]) -> str:
        if "search_patient" in tools:
            return "name"
        if not set(tools) & set(RECORD_TOOLS):
            return "id"
        return self.words.pick(("id", "id", "id", "name", "pronoun"))

    def _clause(self, tool: str, slots: Slots, it: bool) -> str:
        for _ in range(100):
            pattern = subjects(choose(self.words.pick(clauses()[tool]), self.words))
            if "{it}" in pattern and not it:
                continue
            if tool not in WRITES or slots.named or slots.who == "pronoun" or re.search(r"\{who|\{whose", pattern):
                return pattern
        raise ValueError(f"no clause of {tool} names the patient")

    def _join(self, texts: list[str]) -> str:
        if len(texts) == 1:
            return texts[0]
        text = self.words.pick(joints()[len(texts)])
        text = re.sub(r"(?<!\()\d(?!\))", lambda found: texts[int(found[0]) - 1], text)
        if self.words.chance(0.3):
            text += self.words.pick((" please", ".", "?", " pls", ", thanks"))
        return text[:1].upper() + text[1:] if self.words.chance(0.6) else text

    def _people(self, case: Case, slots: Slots, who: str) -> None:
        if who == "pronoun":
            case.patient = (slots.id, slots.name)
            case.before = self.questions.earlier(slots) if self.words.chance(0.8) else None
        elif who == "name":
            case.found_as = (slots.id, "")


def _pairs(slots: Slots) -> Slots:
    """Clauses name two drugs at most."""
    slots.count = 2
    return slots
