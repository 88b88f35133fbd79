"""Label and abstract text as the APIs send it, made plain and cut into sentences. Pure functions."""

import re
from collections.abc import Iterable
from html import unescape

from docgemma.text.words import visible

TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
SEE = re.compile(r"\[\s*see\b[^\[\]]*\]|\(\s*see\b[^()]*(?:\([^()]*\)[^()]*)*\)", re.IGNORECASE)
SECTION = r"1?\d(?:\.\d{1,2})?"
NUMBERS = re.compile(rf"\(\s*{SECTION}(?:\s*,\s*{SECTION})*\s*\)")
HEADING = re.compile(
    r"^\s*(?:\d{1,2}(?:\.\d+)?\s+)?(?:DRUG INTERACTIONS|CONTRAINDICATIONS|WARNINGS AND PRECAUTIONS|WARNINGS"
    r"|PRECAUTIONS|BOXED WARNING)\b\s*:?\s*",
    re.IGNORECASE,
)
HIGHLIGHTS = "See full prescribing information for complete boxed warning"
# "7.3 Drugs that ..." begins a subsection; "2.5 Because" after a preposition is a number
SUBSECTION = re.compile(
    r"(?<=[.:;)\]a-z])(?<! of)(?<! to)(?<! is)(?<! by)(?<!than)(?<!was)\s+(?=\d{1,2}\.\d{1,2}\s+[A-Z][A-Za-z])"
)
OTC_HEADINGS = (
    "Allergy alert|Stomach bleeding warning|Heart attack and stroke warning|Liver warning|Reye's syndrome|Do not use"
    "|Ask a doctor before use|Ask a doctor or pharmacist before use|When using this product|Stop use and ask"
    "|If pregnant|Keep out of reach"
)
SENTENCE = re.compile(
    r"(?<=[.;!?])(?<!e\.g\.)(?<!i\.e\.)(?<!\bvs\.)(?<!\bSt\.)(?<!\bDr\.)\s+(?=[A-Z0-9\[(‘“\"'])"
    r"|\s*[•●▪·]\s*|\s+[−–]\s+(?=[A-Z])"
    rf"|\s+(?=(?:{OTC_HEADINGS})\b)"
)


def plain(text: str) -> str:
    """Without markup, control and invisible characters; white space in single blanks."""
    return " ".join(visible(unescape(TAG.sub(" ", text))).split())


def section(parts: Iterable[str]) -> str:
    """One label section: plain, without its heading and without references to other sections."""
    text = NUMBERS.sub("", SEE.sub("", plain(" ".join(parts))))
    text = HEADING.sub("", re.sub(r"\s+([.,;:])", r"\1", " ".join(text.split())))
    return re.sub(r"^\d{1,2}\.\d{1,2}\s+(?=[A-Z])", "", re.sub(r"\.{2,}", ".", text)).strip()


def boxed(parts: Iterable[str]) -> str:
    """The boxed warning, once: labels repeat it, shortened, from their Highlights page."""
    text = section(parts)
    again = text.rfind("WARNING", 0, max(0, text.find(HIGHLIGHTS)))
    return text[:again].removesuffix("BOXED ").strip() if again > 80 else text


def subsections(text: str) -> list[str]:
    """Parts of a section that its numbered headings begin ("7.3 Drugs that ..."), numbers gone; one if it has none."""
    return [re.sub(r"^\d{1,2}\.\d{1,2}\s+", "", part).strip() for part in SUBSECTION.split(text) if part.strip()]


def sentences(text: str) -> list[str]:
    """Sentences and list items, in order. Over-the-counter labels have headings instead of full stops."""
    return [part.strip() for part in SENTENCE.split(text) if part and part.strip()]


def items(text: str, limit: int = 400) -> list[str]:
    """A section as a list: its subsections where it has them, else its sentences; each clipped, none twice."""
    parts = subsections(text)
    parts = parts if len(parts) > 1 else sentences(text)
    return list(dict.fromkeys(clip(part, limit) for part in parts))


def clip(text: str, limit: int) -> str:
    """At most `limit` characters, cut at a word and marked as cut."""
    return text if len(text) <= limit else text[: limit - 1].rsplit(" ", 1)[0] + "…"


def around(text: str, start: int, end: int, limit: int) -> str:
    """A piece of a long text around `start:end`, cut at words and marked as cut."""
    if len(text) <= limit:
        return text
    spare = max(0, limit - (end - start))
    left = max(0, min(start - spare // 3, len(text) - limit))
    right = min(len(text), left + limit)
    left = text.rfind(" ", 0, left + 1) + 1 if left else 0
    right = text.rfind(" ", 0, right) if right < len(text) and text.rfind(" ", 0, right) >= end else right
    return ("…" if left else "") + text[left:right].strip() + ("…" if right < len(text) else "")
