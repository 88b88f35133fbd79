"""What a note may be called and may say, from how it is introduced in a question. Pure."""

import re

from docgemma.rules.entities import PATIENT_ID
from docgemma.rules.phrases import MAX_TOKENS, TOKEN

NOTE_TYPES = (
    "progress note", "consult note", "procedure note", "discharge summary", "history and physical note", "nursing note",
    "follow-up note", "telephone note", "SOAP note", "admission note", "operative note", "pre-operative note",
    "post-operative note", "transfer note", "triage note", "referral note", "handover note", "pharmacy note",
    "dietitian note", "nutrition note", "physiotherapy note", "social work note", "anesthesia note", "emergency note",
    "ward round note", "psychiatry note", "clinical note",
)  # fmt: skip
KINDS_IN_FULL = frozenset(NOTE_TYPES[NOTE_TYPES.index("SOAP note") + 1 :])  # their words alone mean other things
SHORT_FOR = {"pre-op": "pre-operative note", "post-op": "post-operative note", "h&p": "history and physical note",
             "discharge note": "discharge summary", "phone note": "telephone note", "consultation": "consult note",
             "physio note": "physiotherapy note", "op note": "operative note"}  # fmt: skip
UNTYPED_NOTE = "clinical note"
NOTE_CUE = re.compile(
    r":\s+|[\"“”]|\b(?:saying|stating|that|note|noting|documenting|reads|follows|text|about|on|for)\b\s+|,\s+|—\s*|\s-\s+"
)
QUOTED = re.compile(r"[\"“]([^\"“”]+)[\"”]")
COLON = re.compile(r"^[^:\n]{0,120}?:\s+(?:(?:\w+\s)?note\s*:\s+)?|\bnote\s*:\s+", re.IGNORECASE)
AFTER_ID = re.compile(rf"^[^,;:.\n]{{0,60}}{PATIENT_ID.pattern}\s*[,;:]\s+", re.IGNORECASE)
DASH = re.compile(r"^[^—\n]{0,120}?\s(?:-|–|—|--)\s+")
# "Save a note to abc-123. Patient feels well.": the order, then the note
FIRST_SENTENCE = re.compile(r"^[^.!?\n]{0,100}\bnotes?\b[^.!?\n]{0,60}[.!]\s+", re.IGNORECASE)
_COMMAND = r"(?:please\s+)?(?:save|add|put|document|note|log|record|file|write|enter|chart)\b"
COMMAND = re.compile(rf"{_COMMAND}.{{0,40}}\b(?:note|record|chart|file|this|that|it)\b", re.IGNORECASE)
# "wound dry, sutures out - save that as a note": the note, then the order
BEFORE = re.compile(
    rf"^(?!\W*{_COMMAND})(.{{12,}}?)\s*[-–—,;.:]\s+{_COMMAND}[^.;:]{{0,80}}[.!]?$", re.IGNORECASE | re.DOTALL
)
# "…, wound dry. Save it.": an order that says nothing of its own
CLOSING = re.compile(
    rf"\s*[-–—,;.]\s+{_COMMAND}(?:\s+(?:it|that|this|as|a|the|to|in|into|his|her|notes?|chart))*\W*$", re.IGNORECASE
)
LEADING = re.compile(r"^(?:a\s+)?(?:\w+\s)?notes?\s*[-–—,:]\s+", re.IGNORECASE)  # "abc-123 - note: …"
POLITE = re.compile(r"[\s,.;-]*\b(?:please|pls|thanks|thank you|thx|cheers|ta)\b[\s.!?]*$|\s*\?+$", re.IGNORECASE)


def note_types(text: str) -> list[str]:
    """The kind of note that is said; else every kind, an untyped one first."""
    said = [kind for word, kind in SHORT_FOR.items() if re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE)]
    for kind in NOTE_TYPES:
        word = kind if kind in KINDS_IN_FULL else kind.removesuffix(" note")
        said += [kind] if re.search(rf"\b{word}\b", text, re.IGNORECASE) else []
    return said[:1] or [UNTYPED_NOTE, *(kind for kind in NOTE_TYPES if kind != UNTYPED_NOTE)]


def note_texts(text: str) -> list[str]:
    """What a note may say: what is quoted; else what follows a colon, a dash or the sentence that orders it, or what
    stands before the order; else the rest of the question after a cue, its clauses, any of its endings."""
    text = CLOSING.sub("", POLITE.sub("", text))
    if quoted := [part.strip() for part in QUOTED.findall(text)]:
        return quoted
    marked = [*_after(COLON, text), *_after(DASH, text), *_after(AFTER_ID, text), *_after(FIRST_SENTENCE, text)]
    marked = [LEADING.sub("", part) for part in marked]
    marked = [part for part in marked if len(part.split()) > 1 and not COMMAND.match(part)]
    if before := BEFORE.match(text):
        marked.append(before[1])
    if marked:
        return marked
    clauses = [part for part in re.split(r"(?<=[.;!?])\s+|\n", text) if len(part.split()) > 1]
    endings = [text[match.start() :] for match in list(TOKEN.finditer(text))[:MAX_TOKENS]]
    return [*_after(NOTE_CUE, text), *clauses, *endings]


def _after(mark: re.Pattern, text: str) -> list[str]:
    return [text[match.end() :] for match in mark.finditer(text)]
