"""What of a patient decides about drugs: age, weight, sex, pregnancy, kidney function, problems, results. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from math import inf
from typing import Any

from docgemma.reading.terms import measure_named, measure_said, said_in
from docgemma.rules.chart_entries import age
from docgemma.rules.grounding import split
from docgemma.rules.typed import as_compared, typed_values, unit_by_size
from docgemma.text.births import age_and_sex
from docgemma.text.numbers import NUMBER_WORDS
from docgemma.text.told import ended_pregnancy, spelled, told_behind, told_problems, told_weeks
from docgemma.text.words import affirmed, clinical, listed, names, plain

KILOGRAMS = {"kg": 1.0, "g": 0.001, "lb": 0.4536, "[lb_av]": 0.4536}
ADULT, OF_ADULTS, BESIDE_BANDS = 18, "an adult's, none is stored for a child", "an adult's"
CHILD_KG = 40  # below this weight, where no age is given, the rows of children are meant
WRITTEN = "as you wrote"  # in place of a result's date
KIDNEYS = {"egfr": "eGFR", "creatinine clearance": "creatinine clearance"}
BEYOND = ("hysterectomy", "menopaus", "postmenopaus", "sterili", "bilateral oophorectomy")


@dataclass(frozen=True)
class PatientState:
    """None is what the chart does not say. `results`: measure -> (value, unit, date) of the latest. `noted`: what only
    a note says: (name, quotation, fragments of the rules that it bears on). `told`: what a message says he has."""

    age: float | None  # years
    sex: str
    weight: float | None  # kg
    problems: tuple[str, ...]
    results: Mapping[str, tuple[float, str, str]]
    pregnancy_weeks: int | None = None
    noted: tuple[tuple[str, str, list[str]], ...] = ()
    told: tuple[str, ...] = ()
    ended: str = ""  # by which words a message tells that the pregnancy of the chart is over

    def has(self, group: str) -> str:
        """The active problem that belongs to a group of `data/clinical/problems.yaml`; "" if there is none."""
        return self.named(_fragments(group))

    def named(self, fragments: Sequence[str]) -> str:
        """The active problem whose name has one of these beginnings of words, a noted one too; "" if there is none."""
        held = [*((name, name) for name in self.problems), *((name, quoted) for name, quoted, _ in self.noted)]
        held += [(span, f"{span} ({WRITTEN})") for span in self.told]
        return next((says for name, says in held if names(fragments, name)), "")

    @property
    def clearance(self) -> float | None:
        """Creatinine clearance in mL/min by Cockcroft and Gault, of adults; None where a part of it is not recorded."""
        value, _, _ = self.results.get("creatinine", (0.0, "", ""))
        if not value or self.age is None or self.weight is None or self.age < 18:
            return None
        return (140 - self.age) * self.weight * (0.85 if self.sex == "female" else 1.0) / (72 * value)

    def kidneys(self, by_egfr: bool = False) -> tuple[float, str] | None:
        """The kidney function that counts, in words too: what a message states, else the lower one of the recorded eGFR
        and the clearance worked out, which does not count for a drug that is dosed `by_egfr`; None if none is known."""
        value, name, day = self.results.get("egfr") or self.results.get("creatinine clearance") or (0.0, "", "")
        latest = (value, f"{name} {value:g} ({WRITTEN})" if day == WRITTEN else f"latest eGFR: {value:g} ({day})")
        if day == WRITTEN or not (cleared := self.clearance) or (by_egfr and day):
            return latest if day else None
        worked = (cleared, f"creatinine clearance about {cleared:.0f} mL/min (Cockcroft-Gault)")
        return min(latest, worked) if day else worked

    @property
    def may_become_pregnant(self) -> bool:
        of_age = self.sex == "female" and self.age is not None and 12 <= self.age <= 50
        return of_age and not self.named(BEYOND) and not self.has("pregnancy")


ONLY_AGES = frozenset(["yo", "yrold", "yearold", "monthold"])  # no duration is written so
UNKNOWN = PatientState(age=None, sex="", weight=None, problems=(), results={})


def patient_state(chart: Mapping[str, Any], today: date) -> PatientState:
    """Read it from the data of `get_patient_chart`."""
    born = chart["patient"]["birth_date"]
    results: dict[str, tuple[float, str, str]] = {}
    for item in [*chart["labs"], *chart["vitals"]]:
        if (name := measure_named(item["name"])) and (value := _number(item["value"])) is not None:
            results.setdefault(name, (*as_compared(name, str(value), item["unit"]), item["date"]))
    weight, unit, _ = results.get("weight", (0.0, "", ""))
    factor = KILOGRAMS.get(unit.casefold(), 0)
    return PatientState(
        age=_age(born, today) if len(born) == 10 else None,
        sex=chart["patient"].get("sex", ""),
        weight=weight * factor or None,
        problems=tuple(item["name"] for item in chart["conditions"] if item["active"]),
        results=results,
        pregnancy_weeks=_weeks(chart, today),
        noted=tuple(_noted(chart)),
    )


def with_told(chart: dict[str, Any], patient: PatientState) -> dict[str, Any]:
    """A chart with the results that a message tells in place of the recorded ones."""
    staged = {words for words, _ in clinical("conditions")["kidneys"].values()}  # a stage is no result
    told = {name: value for name, value in patient.results.items() if value[2] == WRITTEN and value[1] not in staged}
    labs = ((item, told.get(measure_named(item["name"]))) for item in chart["labs"])
    return {**chart, "labs": [
        {**item, "value": f"{new[0]:g}", "unit": new[1], "date": WRITTEN, "flag": WRITTEN} if new else item
        for item, new in labs
    ]}  # fmt: skip


def told_of_adults(rows: Sequence[Any], patient: PatientState, child: bool = False) -> list[Any]:
    """The rows, marked as an adult's where a child is meant and none of them is for an age: "(an adult's, ...)"."""
    child = child or (patient.age is not None and patient.age < ADULT)
    if not child or any("age_below" in row or any("per_kg" in key for key in row) for row in rows):
        return list(rows)
    bands = [row for row in rows if row.get("weight_below_kg", CHILD_KG + 1) <= CHILD_KG]  # "below 30 kg" is a child's
    note = BESIDE_BANDS if bands else OF_ADULTS
    return [
        row if row in bands else {**row, "note": "; ".join(filter(None, [note, row.get("note", "")]))} for row in rows
    ]


def as_told(text: str, patient: PatientState) -> PatientState:
    """The patient with the weight, age, eGFR and results of one unit everywhere that a message gives, "20 kg", "6yo",
    "eGFR 25", "K 6.3", and what it states: "she's 6/40", "missed 4 days"."""
    problems = told_problems(text)
    bare = text.casefold().replace("/kg", " per kilo").replace("/", "").replace("-", " ")  # "15 mg/kg" is no weight
    words = [word.strip(",;:.()?!") for word in _apart(bare).split()]  # "y/o", "6-year-old"
    units = clinical("units")["person"]
    told: dict[str, float] = {}
    supposed = bool(listed("telling", "supposing") & {*words})
    for at, word in enumerate(words):
        value = float(word) if word.replace(".", "", 1).isdecimal() else NUMBER_WORDS.get(word, 0)
        unit, behind = [*words[at + 1 : at + 3], "", ""][:2]
        aged = unit in ONLY_AGES or behind == "old"
        if value and unit in units["weight"]:
            lead = [] if supposed and words[at - 1] == "to" and words[at - 2] != "up" else words[max(at - 2, 0) : at]
            beside = {*lead} - listed("request_words", "weight_bounds") | {behind}
            if not beside & listed("request_words", "weight_changes"):  # "lost 5 kg"
                told.setdefault("weight", value * units["weight"][unit])
        elif value and unit in units["age"] and aged:
            told.setdefault("age", value * units["age"][unit])
        elif supposed and value >= ADULT and words[at - 1] in ("was", "were") and not measure_said(words[at - 2]):
            told.setdefault("age", value)
        elif value and at and words[at - 1] in ("age", "aged"):
            told.setdefault("age", value * units["age"].get(unit, 1))
    years, sex = age_and_sex(text) if not (patient.sex or patient.age) else (None, "")  # "41F"
    told |= {"age": years} if years and "age" not in told else {}
    patient = replace(patient, sex=patient.sex or sex)
    typed = [(name.casefold(), value) for name, value in typed_values(text) if "/" not in value]
    kidneys = [("egfr", (float(value), KIDNEYS[name], WRITTEN)) for name, value in typed if name in KIDNEYS]
    recorded = (patient.results.get("egfr") or (inf,))[0]  # a stage says less than a result
    staged = [one for problem in problems for name, one in clinical("conditions")["kidneys"].items() if name in problem]
    kidneys += [("egfr", (value, words, WRITTEN)) for words, value in staged if value < recorded]
    sized = [(name, value) for name, value in typed if unit_by_size(name, value) is not None]
    measured = {name: (*as_compared(name, value), WRITTEN) for name, value in sized}
    theirs = {word.removesuffix("'s") for word in words} & listed("telling", "unsaid")  # "wife's EF 30"
    reduced = [name for one, (below, name) in clinical("conditions")["by_result"].items()
               if one in measured and measured[one][0] < below and not theirs]  # fmt: skip
    weight = told.get("weight", patient.weight)
    age = told.get("age", patient.age) if supposed or patient.age is None else patient.age
    men, of_women = patient.sex == "male", listed("telling", "of_women")  # "VA is 6/40" of him is none
    entries = [entry["name"] for entry in stated(text) if not (men and names(of_women, entry["name"]))]
    pregnant = patient.has("pregnancy") or names(["pregnan"], " ".join(entries))
    ended = ended_pregnancy(text) if patient.has("pregnancy") else ""
    entries += ["present breastfeeding"] if ended and names(listed("telling", "feeding"), affirmed(text)) else []
    weeks = None if men or ended else told_weeks(_apart(text), bool(pregnant))
    entries = [*([f"{weeks} weeks of pregnancy"] if weeks else []), *entries]
    for problem in [*problems, *reduced]:
        groups = [item["chart"] for item in clinical("problems")["problems"] if names(item["chart"], problem)]
        entries += [] if any(map(patient.named, groups)) else [problem]  # by the chart's own name, where it has it
    spans = [span for span in told_behind(spelled(text), "having") if not names(of_women, span)]
    return replace(
        patient, age=age, weight=weight, told=tuple(spans), ended=ended,
        pregnancy_weeks=weeks or patient.pregnancy_weeks,
        problems=(*(f"{name} ({WRITTEN})" for name in entries), *patient.problems),
        results={**patient.results, **measured, **dict(kidneys[:1])},
    )  # fmt: skip


def stated(text: str) -> list[Any]:
    """The entries of `stated` that a message tells; "she's pregnant?" alone asks and tells nothing."""
    told, of_women = said_in(affirmed(text), "stated"), listed("telling", "of_women")
    for part in text.replace("!", ".").replace("\n", ".").replace(";", ".").split("?")[:-1]:
        asked = plain(part.rpartition(". ")[2])
        bare = [(entry, asked.removesuffix(said)) for entry in told if names(of_women, entry["name"])
                for said in entry["said"] if asked.endswith(said)]  # fmt: skip
        asks = [entry for entry, rest in bare if not listed("telling", "asking", "asking_leave") & set(rest.split())]
        told = [entry for entry in told if entry not in asks]
    return told


def _apart(text: str) -> str:
    """A text with a blank between a number and the letters behind it."""
    return "".join(f" {char}" if before.isdigit() and char.isalpha() else char for before, char in pairwise(f" {text}"))


def _weeks(chart: Mapping[str, Any], today: date) -> int | None:
    """Weeks of pregnancy as the newest note says them, counted on to today; None if none does."""
    for item in chart["notes"]:
        words = plain(item["text"]).replace("-", " ").split()
        for before, word in pairwise(words):
            if word.startswith("week") and before.isdigit() and names(_fragments("pregnancy"), item["text"]):
                written = date.fromisoformat(item["date"][:10]) if len(item["date"]) >= 10 else today
                weeks = int(before) + (today - written).days // 7
                return weeks if weeks <= 43 else None
    return None


def _noted(chart: Mapping[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """Each of `noted` in `data/clinical/problems.yaml`, with the sentence of the newest note that tells it;
    each recorded reaction that bears on other drugs too: "angioedema (recorded allergy to lisinopril)"."""
    said = [(note, text) for note in chart["notes"] for text, _ in split(note["text"].strip("“”"))]
    for entry in clinical("problems")["noted"]:
        for note, text in [item for item in said if names(entry["said"], affirmed(item[1]))][:1]:
            yield entry["name"], f"{entry['name']} (“{text}”, {note['type']}, {note['date'][:10]})", entry["bears"]
    groups = [entry for entry in clinical("problems")["problems"] if "reaction_to" in entry]
    for item in chart["allergies"]:
        told = [entry for entry in groups if names(entry["chart"], item["reaction"])]
        if any(not entry["reaction_to"] or names(entry["reaction_to"], item["substance"]) for entry in told):
            yield item["reaction"], f"{item['reaction']} (recorded allergy to {item['substance']})", []


def _fragments(group: str) -> list[str]:
    return next((entry["chart"] for entry in clinical("problems")["problems"] if entry["name"] == group), [])


def _number(text: str) -> float | None:
    """The number of a result, "<30" and "> 90" too."""
    kept = "".join(char for char in str(text) if char.isdigit() or char == ".")
    return float(kept) if kept.replace(".", "", 1).isdecimal() else None


def _age(born: str, today: date) -> float:
    """Whole years; of infants below two with their part of a year."""
    years = age(born, today)
    return years if years > 1 else round((today - date.fromisoformat(born)).days / 365.25, 2)
