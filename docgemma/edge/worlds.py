"""Invented tool results for training, worded by the project's real formatters. Nothing here is a medical fact."""

import json
import re
from functools import cache

from docgemma.edge.charts import Charts, Payload, texts
from docgemma.edge.evidence import LABEL, topics
from docgemma.edge.lexicon import Lexicon, groups, words
from docgemma.paths import data_file
from docgemma.rules.errors import error_message
from docgemma.state import ToolResult
from docgemma.tools import toolbox

ABSENT_LABEL = {
    "interactions": "",
    "max_daily_dose": "",
    "boxed_warning": "",
    "contraindications": [],
    "warnings": [],
    "brand_names": [],
    "drug_classes": [],
}
TOOLS = {tool.name: tool for tool in toolbox()}
FAILURES = (
    "timeout",
    "rate_limit",
    "server_error",
    "service_unavailable",
    "invalid_response",
    "not_found",
    "invalid_args",
    "drug_not_in_database",
)


class World(Charts):
    """Builds results. `quality` is what a perfect judge would call the result, as far as the model is asked."""

    def __init__(self, lexicon: Lexicon):
        super().__init__(lexicon)
        self.label = texts("label_texts")

    def result(self, tool: str, args: Payload, question: str, quality: str = "success_rich") -> ToolResult:
        """A successful call of `tool`, its payload fitting `quality`."""
        payload = getattr(self, f"_{tool}")(args, question, quality)
        said = {key: value for key, value in args.items() if not key.startswith("_")}
        return self._result(tool, said, payload, TOOLS[tool].format(payload))

    def failed(self, tool: str, args: Payload, kind: str) -> ToolResult:
        """A failed call, in the words a clinician reads."""
        spec = TOOLS[tool]
        message = error_message(kind, spec.label, args, spec.entity, {})
        said = {key: value for key, value in args.items() if not key.startswith("_")}
        return self._result(tool, said, {}, message) | {"error": message, "error_type": kind}

    @staticmethod
    def _result(tool: str, args: Payload, payload: Payload, text: str) -> ToolResult:
        return ToolResult(
            tool_name=tool,
            tool_label=TOOLS[tool].label,
            args=args,
            result=payload,
            formatted_result=text,
            error=None,
            error_type=None,
            details={},
            empty=False,
            source=None,
            as_of=None,
            links=[],
            seconds=0.0,
            retries=0,
        )

    def _search_patient(self, args: Payload, question: str, quality: str) -> Payload:
        asked = args["name"]
        if quality == "no_results":
            return {"name": asked, "patients": []}
        name = args.get("_name") or full_name(asked, self.words)
        if quality == "success_partial":
            name = " ".join(self.words.typo(part) for part in name.split())
        person = self.person(args["_id"] if "_id" in args else self.words.patient_id(), name)
        return {"name": asked, "patients": [person | {"guessed": quality == "success_partial"}]}

    def _check_drug_safety(self, args: Payload, question: str, quality: str) -> Payload:
        if (real := real_labels().get(args["drug_name"].lower())) and self.words.chance(0.6):
            return ABSENT_LABEL | real | {"drug": real["name"], "asked": args["drug_name"], "fell_back": None}
        drug = args["drug_name"].lower()
        asked = topics(question, LABEL)
        keep = [
            topic.says for topic in asked if topic.name not in ("contraindications", "interactions", "maximum dose")
        ]
        parts = {}
        for key, low, high in (("boxed", 1, 1), ("contra", 0, 4), ("warn", 1, 5)):
            pool = [item.replace("{drug}", drug) for item in self.label[key]]
            outside = [item for item in pool if not any(says.search(item) for says in keep)]
            parts[key] = self.some(outside, low, high)
        if quality == "success_rich" and keep:
            for says in keep:
                pool = [item for item in self.label["warn"] + self.label["contra"] if says.search(item)]
                if pool:
                    chosen = self.words.pick(pool)
                    parts["warn" if chosen in self.label["warn"] else "contra"].insert(0, chosen)
        boxed = parts["boxed"][0] if self.words.chance(0.65) else ""
        if boxed and self.words.chance(0.4):
            boxed = f"{boxed}. {self.words.pick(self.label['boxed'])}."
        return {
            "drug": drug,
            "asked": args["drug_name"],
            "brand_names": [self.words.invented_drug().capitalize()][: self.rng.randint(0, 1)],
            "drug_classes": [self.words.pick(self.label["class"])],
            "boxed_warning": boxed,
            "has_boxed_warning": bool(boxed),
            "contraindications": parts["contra"],
            "warnings": parts["warn"],
            "interactions": self.words.pick([*self.label["interacts"], ""]),
            "max_daily_dose": self.words.pick([*self.label["dose"], "", ""]),
            "reference": "",
            "effective": None,
            "fell_back": "x" if self.words.chance(0.08) else None,
        }

    def _check_drug_interactions(self, args: Payload, question: str, quality: str) -> Payload:
        drugs = [drug.lower() for drug in args["drug_names"]]
        pairs = [(a, b) for at, a in enumerate(drugs) for b in drugs[at + 1 :]]
        unknown: list[str] = []
        if quality != "success_rich":
            if quality == "no_results" or (len(drugs) > 2 and self.words.chance(0.7)) or len(pairs) == 1:
                unknown = [self.words.pick(drugs)]
            pairs = [pair for pair in pairs if not set(unknown) & set(pair)]
        found = (
            [] if quality == "no_results" else self.rng.sample(pairs, self.rng.randint(min(1, len(pairs)), len(pairs)))
        )
        if quality == "success_rich":
            found = pairs if len(pairs) == 1 else self.rng.sample(pairs, self.rng.randint(1, len(pairs)))
        items = [
            real_pairs().get(frozenset(pair))
            or {
                "drugs": list(pair),
                "severity": self.words.pick(self.label["severity"]),
                "mechanism": self.words.pick(self.label["mechanism"]),
                "management": self.words.pick(self.label["management"]),
                "reference": "",
            }
            for pair in found
        ]
        rank = {"contraindicated": 0, "major": 1, "moderate": 2, "minor": 3}
        items.sort(key=lambda item: rank[item["severity"]])
        none = [list(pair) for pair in pairs if pair not in found]
        return {
            "drugs": drugs,
            "asked": args["drug_names"],
            "interactions": items,
            "none_listed": none,
            "not_checked": unknown,
            "fell_back": None,
        }

    def _search_medical_literature(self, args: Payload, question: str, quality: str) -> Payload:
        if quality == "no_results" and self.words.chance(0.4):
            return {"query": args["query"], "articles": [], "fell_back": None}
        demo = quality == "success_partial" and self.words.chance(0.5)
        topic = args["query"] if quality == "success_rich" or demo else self.words.topic()
        if quality == "success_partial" and not demo:  # near the topic, and not on it
            kept = re.findall(r"[A-Za-z-]{5,}", args["query"])
            topic = f"{self.words.pick(kept)} and {self.words.pick(words('conditions'))}" if kept else topic
        articles = [self._article(topic, demo) for _ in range(self.rng.randint(1, 5))]
        return {"query": args["query"], "articles": articles, "fell_back": None}

    def _article(self, topic: str, demo: bool) -> Payload:
        title = self.words.pick(self.record["articletitle"]).replace("{topic}", topic)
        if demo:
            return self._demonstration_article(topic)
        finding = self.words.pick(self.record["finding"]).replace("{n}", str(self.rng.randint(3, 78)))
        number = f"DEMO-LIT-{self.rng.randint(1, 60):03d}" if demo else str(self.rng.randint(95_000_000, 99_999_999))
        return {
            "id": number,
            "title": title[:1].upper() + title[1:],
            "authors": "",
            "year": self.rng.randint(1998, 2026),
            "journal": self.words.pick(self.record["journal"]),
            "url": "",
            "demonstration": demo,
            "abstract": f"In {self.rng.randint(20, 9000)} participants, {topic} {finding}.",
        }

    def _demonstration_article(self, topic: str) -> Payload:
        """As the shipped snapshot has them."""
        about = " ".join(self.words.pick(self.record["finding"]).replace("{n}", "some").split())
        return {
            "id": f"DEMO-LIT-{self.rng.randint(1, 60):03d}",
            "title": f"[Demonstration record] {topic[:1].upper()}{topic[1:]}",
            "authors": "Demonstration authors",
            "journal": "Demonstration collection",
            "year": None,
            "abstract": f"{topic[:1].upper()}{topic[1:]} {about}.",
            "url": "",
            "demonstration": True,
        }

    def _find_clinical_trials(self, args: Payload, question: str, quality: str) -> Payload:
        if quality == "no_results" and self.words.chance(0.5):
            return {"condition": args["condition"], "status": args.get("status"), "trials": [], "fell_back": None}
        demo = quality == "success_partial" and self.words.chance(0.5)
        condition = self.words.pick(words("conditions")) if quality == "no_results" else args["condition"]
        wanted = "RECRUITING" if "recruit" in question.lower() or "enrol" in question.lower() else None
        if wanted and quality == "success_partial" and not demo:
            wanted = self.words.pick(("COMPLETED", "TERMINATED", "WITHDRAWN"))
        trials = [self._trial(condition, wanted, demo) for _ in range(self.rng.randint(1, 4))]
        return {"condition": args["condition"], "status": args.get("status"), "trials": trials, "fell_back": None}

    def _trial(self, condition: str, status: str | None, demo: bool) -> Payload:
        drug, other = self.words.drugs(2)
        title = self.words.pick(self.record["trialtitle"])
        thing = self.words.pick(groups("topic_words")["nonpharm"])
        fills = {"{drug}": drug, "{drug2}": other, "{cond}": condition, "{nonpharm}": thing}
        for slot, text in fills.items():
            title = title.replace(slot, text)
        title = f"[Demonstration record] {title}" if demo else title
        number = (
            f"DEMO-TRIAL-{self.rng.randint(1, 40):03d}" if demo else f"NCT{self.rng.randint(95_000_000, 99_999_999)}"
        )
        return {
            "id": number,
            "title": title,
            "status": status or self.words.pick(self.record["trialstatus"]),
            "phase": self.words.pick(self.record["phase"]),
            "conditions": [condition],
            "interventions": [drug],
            "locations": self.some(self.record["place"], 0, 3),
            "summary": "",
            "url": "",
            "demonstration": demo,
        }

    def _written(self, args: Payload) -> Payload:
        return {
            "resource_type": "",
            "resource_id": self.words.syllables(2, 3) + str(self.rng.randint(10, 99)),
            "patient": {"id": args["patient_id"], "name": args.get("_name") or self.words.name()},
            "recorded": f"{self.date()}T10:00:00+00:00",
        }

    def _prescribe_medication(self, args: Payload, question: str, quality: str) -> Payload:
        return self._written(args) | {
            "medication": args["medication_name"],
            "dosage": args["dosage"],
            "frequency": args["frequency"],
            "notes": args.get("notes"),
        }

    def _add_allergy(self, args: Payload, question: str, quality: str) -> Payload:
        return self._written(args) | {
            "substance": args["substance"],
            "reaction": args.get("reaction"),
            "severity": args.get("severity"),
        }

    def _save_clinical_note(self, args: Payload, question: str, quality: str) -> Payload:
        return self._written(args) | {"note_type": args["note_type"], "note_text": args["note_text"]}

    def _analyze_medical_image(self, args: Payload, question: str, quality: str) -> Payload:
        sure = self.rng.uniform(0.6, 0.98) if quality == "success_rich" else self.rng.uniform(0.05, 0.45)
        word = "high" if sure >= 0.8 else "medium" if sure >= 0.5 else "low"
        return {
            "query": args["query"],
            "modality": self.words.pick(("chest_xray", "xray", "ct", "mri", "dermatology", "ophthalmology")),
            "findings": self.some(self.record["imgfinding"], 1, 3),
            "impression": self.words.pick(self.record["imgimpression"]),
            "confidence": round(sure, 2),
            "confidence_word": word,
            "requires_specialist_review": sure < 0.7,
        }


@cache
def real_labels() -> dict[str, Payload]:
    """The shipped snapshot's labels by every name, as the payload of the drug safety tool."""
    found: dict[str, Payload] = {}
    for line in data_file("knowledge", "drugs.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if "name" in entry:
            boxed = entry.get("boxed_warning", "")
            entry["boxed_warning"] = "" if boxed == "none" else boxed
            entry["has_boxed_warning"] = bool(entry["boxed_warning"])
            for name in (entry["name"], *entry.get("synonyms", []), *entry.get("brand_names", [])):
                found[name.lower()] = entry
    return found


@cache
def real_pairs() -> dict[frozenset[str], Payload]:
    """The shipped snapshot's interactions by pair of drugs."""
    lines = data_file("knowledge", "interactions.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [entry for entry in map(json.loads, lines) if isinstance(entry.get("drugs"), list)]
    return {frozenset(entry["drugs"]): entry for entry in entries}


def full_name(asked: str, lexicon: Lexicon) -> str:
    """The name as the record has it: given before family, no title, with capitals."""
    if ", " in asked:
        family, _, given = asked.partition(", ")
        asked = f"{given} {family}"
    if " " not in asked:
        asked = f"{lexicon.pick(words('given_names'))} {asked}"
    return " ".join(part[:1].upper() + part[1:] for part in asked.split())
