"""Invented people and charts for training, as the payload of the record tools. Nothing here is a medical fact."""

from typing import Any

from docgemma.edge.evidence import RECORD, topics
from docgemma.edge.lexicon import Lexicon, words
from docgemma.paths import data_file

Payload = dict[str, Any]


def texts(name: str) -> dict[str, list[str]]:
    """A file of groups whose items are separated by " | "."""
    found = {}
    for line in data_file("edge", "lists", f"{name}.txt").read_text(encoding="utf-8").splitlines():
        key, mark, rest = line.partition(": ")
        if mark and not line.startswith("#"):
            found[key] = [item.strip() for item in rest.split(" | ")]
    return found


class Charts:
    """Makes charts that answer a question, or do not, as wished."""

    def __init__(self, lexicon: Lexicon):
        self.words, self.rng = lexicon, lexicon.rng
        self.record = texts("record_texts")

    def some(self, items: list[str], low: int, high: int) -> list[str]:
        return self.rng.sample(items, min(len(items), self.rng.randint(low, high)))

    def date(self) -> str:
        return f"{self.rng.randint(2019, 2026)}-{self.rng.randint(1, 12):02d}-{self.rng.randint(1, 28):02d}"

    def person(self, patient_id: str, name: str) -> Payload:
        sex, born = self.words.pick(("female", "male")), f"19{self.rng.randint(30, 99)}-{self.date()[5:]}"
        return {"id": patient_id, "name": name, "birth_date": born, "sex": sex, "label": f"{name}, {sex}, born {born}"}

    def _get_patient_chart(self, args: Payload, question: str, quality: str) -> Payload:
        asked = topics(question, RECORD)
        empty = quality == "no_results"
        data = {
            "patient": self.person(args["patient_id"], args.get("_name") or self.words.name()),
            "allergies": [] if empty else [self.allergy() for _ in range(self.rng.choice((0, 1, 1, 2, 3)))],
            "no_known_allergies": False,
            "conditions": [] if empty else [self.problem(item) for item in self.some(self.record["problem"], 1, 5)],
            "medications": [] if empty else [self.medication() for _ in range(self.rng.randint(1, 6))],
            "labs": [] if empty else [self.measured(item) for item in self.some(self.record["lab"], 2, 8)],
            "vitals": [] if empty else self.vitals(),
            "social": [] if empty else self.social(),
            "deceased": self.date() if self.words.chance(0.02) else "",
            "notes": [] if empty else [self.note() for _ in range(self.rng.choice((0, 1, 2)))],
            "immunizations": [{"name": item, "date": self.date()} for item in self.some(self.record["vaccine"], 0, 2)],
        }
        if not empty:
            self._fit_chart(data, asked, question, quality)
        return data

    def _fit_chart(self, data: Payload, asked: list, question: str, quality: str) -> None:
        """Put in what the question asks for, or leave it out."""
        kinds = {
            "allergies": "allergies",
            "medications": "medications",
            "problems": "conditions",
            "vaccinations": "immunizations",
            "vital signs": "vitals",
            "notes": "notes",
            "laboratory results": "labs",
        }
        rich = quality == "success_rich"
        for topic in asked:
            part = kinds.get(topic.name)
            if part and not rich:
                data[part] = []
            elif part and not data[part]:
                data[part] = [self._one(part)]
            elif not part:
                named = [item for item in self.record["lab"] if topic.says.search(item)]
                data["labs"] = [item for item in data["labs"] if not topic.says.search(item["name"])]
                data["vitals"] = [item for item in data["vitals"] if rich or not topic.says.search(item["name"])]
                data["conditions"] = [item for item in data["conditions"] if not topic.says.search(item["name"])]
                if rich and named:
                    data["labs"].insert(self.rng.randint(0, len(data["labs"])), self.measured(self.words.pick(named)))
        if rich and not data["allergies"] and self.words.chance(0.5):
            data["no_known_allergies"] = True

    def _one(self, part: str) -> Payload:
        makers = {
            "allergies": self.allergy,
            "medications": self.medication,
            "notes": self.note,
            "conditions": lambda: self.problem(self.words.pick(self.record["problem"])),
            "vitals": lambda: self.vitals()[0],
            "labs": lambda: self.measured(self.words.pick(self.record["lab"])),
            "immunizations": lambda: {"name": self.words.pick(self.record["vaccine"]), "date": self.date()},
        }
        return makers[part]()

    def allergy(self) -> Payload:
        severity = self.words.pick(("severe", "severe", "moderate", "mild", ""))
        return {
            "substance": self.words.pick(words("substances")).capitalize(),
            "reaction": self.words.pick(words("reactions")),
            "severity": severity,
            "criticality": "",
            "active": self.words.chance(0.92),
        }

    def problem(self, name: str) -> Payload:
        return {"name": name, "active": self.words.chance(0.85), "onset": self.date()}

    def medication(self) -> Payload:
        name = self.words.drug() if self.words.chance(0.5) else self.words.drug().capitalize()
        dosage = self.words.pick(self.record["dosing"])
        return {
            "name": name,
            "dosage": dosage,
            "active": self.words.chance(0.85),
            "status": "active",
            "started": self.date(),
        }

    def measured(self, spec: str) -> Payload:
        name, unit, low, high, normal_low, normal_high = (part.strip() for part in spec.split(","))
        places = 0 if float(high) > 30 else 1 if float(high) > 3 else 2
        value = round(self.rng.uniform(float(low), float(high)), places)
        value = int(value) if places == 0 else value
        flag = "normal"
        if normal_low and value < float(normal_low):
            flag = "low"
        if normal_high and value > float(normal_high):
            flag = "high"
        if flag != "normal" and self.words.chance(0.1):
            flag = f"critically {flag}"
        return {
            "name": name,
            "value": f"{value:g}",
            "unit": unit,
            "flag": flag,
            "date": self.date(),
            "low": None,
            "high": None,
            "code": "",
        }

    def vitals(self) -> list[Payload]:
        made = [
            ("Blood pressure", f"{self.rng.randint(88, 189)}/{self.rng.randint(50, 112)}", "mmHg"),
            ("Heart rate", str(self.rng.randint(44, 138)), "/min"),
            ("Body weight", f"{self.rng.randint(41, 133)}", "kg"),
        ]
        date = self.date()
        return [
            {
                "name": name,
                "value": value,
                "unit": unit,
                "flag": "",
                "date": date,
                "low": None,
                "high": None,
                "code": "",
            }
            for name, value, unit in made[: self.rng.randint(1, 3)]
        ]

    def social(self) -> list[Payload]:
        if self.words.chance(0.6):
            return []
        value = self.words.pick(("Former smoker", "Never smoker", "Current every day smoker"))
        return [
            {
                "name": "Tobacco smoking status",
                "value": value,
                "unit": "",
                "flag": "",
                "date": self.date(),
                "low": None,
                "high": None,
                "code": "",
            }
        ]

    def note(self) -> Payload:
        return {
            "type": self.words.pick(words("note_types")).capitalize(),
            "date": self.date(),
            "text": self.words.pick(words("notes")),
        }
