"""What a small model gets to read of a result: the critical head and the lines that bear on the question. Pure."""

import re
from dataclasses import dataclass

from docgemma.tools.text import clip

LINE_CHARS = 240
ALWAYS = 2  # a formatter puts the critical lines first
CAVEAT = re.compile(
    r"This patient is recorded as deceased|Demonstration records|The live service|No |.*was not found|Specialist review"
)


@dataclass(frozen=True)
class Topic:
    """Something a question may ask of a result: how questions word it, how result lines word it, its plain name."""

    asks: re.Pattern
    says: re.Pattern
    name: str


def _topic(name: str, asks: str, says: str = "") -> Topic:
    return Topic(re.compile(rf"\b(?:{asks})", re.IGNORECASE), re.compile(says or asks, re.IGNORECASE), name)


RECORD = (
    _topic("allergies", r"allerg|intoleran", r"allerg"),
    _topic("medications", r"meds?\b|medic(?:ation|ine)s?\b|tablets|prescriptions|tak(?:es?|ing)\b", r"medication"),
    _topic("problems", r"problems?\b|diagnos|conditions?\b|past medical", r"problem:"),
    _topic("vaccinations", r"vaccin|immuni[sz]|shot\b|booster", r"immunization"),
    _topic("vital signs", r"vitals?\b", r"vital sign:"),
    _topic("blood pressure", r"bp\b|blood pressure|hypertensive", r"blood pressure|hypertension"),
    _topic("weight", r"weight|bmi\b"),
    _topic("heart rate", r"heart rate|pulse"),
    _topic("laboratory results", r"labs?\b|lab (?:results?|trend)|blood results|bloods\b", r"\blab: "),
    _topic("creatinine", r"creatinine|kidney function|renal function", r"creatinine|egfr"),
    _topic("eGFR", r"egfr|gfr\b|kidney function", r"egfr"),
    _topic("potassium", r"potassium|k\+"),
    _topic("sodium", r"sodium"),
    _topic("HbA1c", r"hba1c|a1c|diabet", r"a1c|diabet"),
    _topic("hemoglobin", r"ha?emoglobin|hb\b", r"hemoglobin,|hemoglobin \d"),
    _topic("INR", r"inr\b"),
    _topic("LDL cholesterol", r"ldl|cholesterol", r"ldl"),
    _topic("TSH", r"tsh\b|thyroid", r"tsh|thyroid"),
    _topic("glucose", r"glucose|blood sugar", r"glucose"),
    _topic("ALT", r"alt\b|lfts?\b|liver function", r"\balt\b|\bast\b|bilirubin"),
    _topic("platelets", r"platelets?"),
    _topic("troponin", r"troponin"),
    _topic("smoking status", r"smok|tobacco", r"smok|tobacco"),
    _topic("notes", r"notes?\b|last visit|noted", r"^note"),
)  # fmt: skip
LABEL = (
    _topic("pregnancy", r"pregnan", r"pregnan|fetal|embryo|fetus"),
    _topic("breastfeeding", r"breast-?feed|lactat|nursing mother", r"lactation|breast-?feeding"),
    _topic("renal impairment", r"renal|kidney|egfr|ckd|dialysis", r"renal|kidney|egfr|nephro|creatinine"),
    _topic("liver disease", r"liver|hepat|cirrho", r"hepat|liver"),
    _topic("the elderly", r"elderly|older|over (?:65|75|80)", r"elderly|older"),
    _topic("children", r"child|paediatric|pediatric", r"child"),
    _topic("heart failure", r"heart failure|chf\b", r"heart failure"),
    _topic("asthma", r"asthma", r"asthma|bronchosp"),
    _topic("seizures", r"seizure|epilep", r"seizure"),
    _topic("QT prolongation", r"qt\b|qtc|arrhythm", r"\bqt|arrhythm|torsade"),
    _topic("contraindications", r"contraindicat", r"contraindicat"),
    _topic("maximum dose", r"max(?:imum)? (?:daily )?dose", r"maximum"),
    _topic("interactions", r"interact", r"interact"),
)  # fmt: skip


def topics(question: str, kinds: tuple[Topic, ...]) -> list[Topic]:
    """What the question asks of a result, in the order of `kinds`."""
    return [topic for topic in kinds if topic.asks.search(question)]


def focus(text: str, question: str, limit: int) -> str:
    """A formatted result on one line of at most about `limit` characters."""
    return " | ".join(shown_lines(text, question, limit))


def shown_lines(text: str, question: str, limit: int) -> list[str]:
    """The lines of a formatted result that fit: its head, its caveats, what the question asks for, then the rest while
    there is room; in their own order. "…" stands at the end where lines were left out."""
    # where there is room for everything, lines stay whole
    lines = [clip(line.strip(), max(LINE_CHARS, limit // 10)) for line in text.splitlines() if line.strip()]
    wanted = [*topics(question, RECORD), *topics(question, LABEL)]
    stems = {word[:6].lower() for word in re.findall(r"[A-Za-z]{5,}", question)}
    order = sorted(
        range(len(lines)),
        key=lambda at: (at >= ALWAYS and not CAVEAT.match(lines[at]), not _bears(lines[at], wanted, stems), at),
    )
    kept, used = set(), 0
    for at in order:
        if kept and used + len(lines[at]) > limit:
            continue
        kept.add(at)
        used += len(lines[at]) + 3
    shown = [lines[at] for at in sorted(kept)]
    return shown + (["…"] if len(shown) < len(lines) else [])


def _bears(line: str, wanted: list[Topic], stems: set[str]) -> bool:
    return any(topic.says.search(line) for topic in wanted) or any(
        word[:6].lower() in stems for word in re.findall(r"[A-Za-z]{5,}", line)
    )
