"""What a note may be called and may say, from how it is introduced in a question. Pure."""

import re

from docgemma.rules.ids import PATIENT_ID
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
             "physio note": "physiotherapy note", "op note": "operative note", "addendum": "addendum"}  # fmt: skip
UNTYPED_NOTE = "clinical note"
NAMED = re.compile(  # "medication review note", "clinic letter"
    r"(?<![\w'’-])((?:[a-z][a-z-]*\s+){0,2}[a-z][a-z-]*)\s+(note|letter|assessment)\b", re.IGNORECASE
)
_NO_KIND = (
    "pls kindly a an the this that my our his her their one another new quick short brief little small final simple "
    "same single "
    "write save add document create draft enter record make file put log dictate leave jot please to for in on of as "
    "with and then also now chart patient patient's clinical note following today's type up take keep down attach "
    "give store dictating dictation under right ok okay so"
    " need needs want can could you would should i'd like let me just only it is be"
)
NO_KIND = frozenset(_NO_KIND.split())
NOTE_CUE = re.compile(
    r":\s+|[\"“”]|\b(?:saying|stating|that|note|noting|documenting|reads|follows|text|about|on|for)\b\s+|,\s+|—\s*|\s-\s+"
)
QUOTED = re.compile(r"[\"“]([^\"“”]+)[\"”]")
# 'slept well, didn't eat': some words between single marks, which stand inside words as well
SINGLE_QUOTED = re.compile(r"(?<!\w)['‘]((?:[^'‘’\n]|(?<=\w)['’](?=\w)){8,2000})['’](?!\w)")
# not the letters of a SOAP note: "S: cough. O: chest clear."
COLON = re.compile(r"^[^:\n]{0,120}?(?<!\b[SOAP]):\s+(?:(?:\w+\s)?note\s*:\s+)?|\bnote\s*:\s+", re.IGNORECASE)
SAID = re.compile(
    r"\b(?:saying|stating|documenting|noting|describing|reading|to\s+say|that\s+says|which\s+says)\b:?\s+(?:that\s+)?|"
    r"(?:^|[.;!?]\s)[^.;:!?\n]{0,60}\bnotes?\b[^.;:,!?\n]{0,50}?\s+that\s+|\bjot\s+down\s+that\s+|"
    r"^\W*(?:please\s+)?(?:note|document|record|chart|write)(?:\s+down)?\s+that\s+|"
    rf"^\W*(?:please\s+)?(?:note|document|record|chart)\s+(?:on|for|in|under)\s+(?:patient\s+|pt\s+)?{PATIENT_ID.pattern}\s+that\s+|"
    r"\b(?:charts?|records?|file|notes)\s+that\s+|\b(?:stated|noted|recorded|documented)\s+that\s+",
    re.IGNORECASE,
)
AFTER_ID = re.compile(rf"^[^,;:.\n]{{0,60}}{PATIENT_ID.pattern}(?:\s*(?:[,;:]|→|[-=]>)|\s+that)\s+", re.IGNORECASE)
DASH = re.compile(r"^(?:(?!:\s)[^—\n]){0,120}?\s(?:-|–|—|--)\s+")
# "Save a note to abc-123. Patient feels well.": the order, then the note
FIRST_SENTENCE = re.compile(
    r"^[^.!?\n]{0,100}\b(?:notes?|summary|addendum)\b[^.!?\n]{0,60}[.!?]\s+|^\W*dictation\s+for\b[^.!?\n]{0,60}[.!?:]\s+|"
    r"^[^.!?\n]{0,60}\b(?:this|the\s+following)\b[^.!?\n]{0,40}\b(?:file|charts?|records?)\b[^.!?\n]{0,40}[.!?]\s+|"
    r"^\W*(?:can|could)\s+this\s+(?:go\s+(?:in|on|to)|be\s+(?:filed|saved|entered|added))\b[^.!?\n]{0,60}[.!?]\s+",
    re.IGNORECASE,
)
_COMMAND = r"(?:please\s+)?(?:save|add|put|document|note|log|record|file|write|enter|chart)\b"
COMMAND = re.compile(rf"{_COMMAND}.{{0,40}}\b(?:note|summary|record|chart|file|this|that|it)\b", re.IGNORECASE)
# "wound dry, sutures out - save that as a note": the note, then the order
BEFORE = re.compile(
    rf"^(?!\W*{_COMMAND})(.{{12,}}?)\s*[-–—,;.:]\s+{_COMMAND}[^.;:]{{0,80}}[.!]?$", re.IGNORECASE | re.DOTALL
)
# "Wound dry. That's the nursing note for abc-123.", "Wound dry -- could you stick that on abc-123": the note, the order
LAST_SENTENCE = re.compile(
    r"^(.{12,}?(?:[.!?\"”]|(?=\s(?:--|—|–|-)\s)))\s+(?:(?:--|—|–|-|<-+|←)\s*)?(?:"
    r"(?:(?:end\s+of\s+dictation\W+)?(?:that|this|it|the\s+above|all\s+that|goes|into)\b"
    r"[^.!?\n]{0,80}\b(?:notes?|charts?|file|record|discharge\s+summary)\b"
    r"|(?:please\s+|(?:can|could|would)\s+you\s+)(?:stick|put|pop|add|file|save|enter|log)\s+(?:that|this|it)\b)"
    r"[^.!?\n]{0,60}[.!?]*|end\s+of\s+dictation\W*)$",
    re.IGNORECASE | re.DOTALL,
)
LAST_ORDERS = re.compile(r"\b(?:notes?|charts?|file|record|summary|dictation|that|this|it)\b", re.IGNORECASE)
DICTATING = re.compile(
    r"^\W*(?:ok(?:ay)?\W+)?(?:so\W+)?(?:start\s+of\s+dictation|dictating|dictation)(?:\s+now)?\W+", re.I
)
# "…, wound dry. Then show me his chart.": the note, then another request; plans say "then check …", so few verbs count
FURTHER = re.compile(
    r"(?<=[.;!?\"”])\s+(?:and\s+)?(?:then|next|after(?:wards|\s+that)|finally|lastly|(?:having|once|when|after)\s+"
    r"(?:(?:that\s+is|that['’]s|it\s+is|it['’]s|you['’]ve)\s+)?(?:done|saved|filed)(?:\s+(?:that|so|it|this))?),?\s+"
    r"(?:please\s+|(?:can|could|would)\s+you\s+|i['’]d\s+like\s+(?:you\s+)?to\s+)*"
    r"(?:(?:show|open|pull|bring|list|find|search|look\s+up|tell\s+me|let\s+me\s+see|give\s+me)\b"
    r"|(?:order|prescribe)\b(?=[^.]*\d)).*$|"
    r"[,;.]\s+(?:and\s+)?please\s+(?:also\s+)?(?:add|update)\b[^.;]*\ballerg\w*[^.;]*[.!]?$",
    re.IGNORECASE | re.DOTALL,
)
# "…, wound dry. Save it.": an order that says nothing of its own
CLOSING = re.compile(
    rf"\s*[-–—,;.]\s+{_COMMAND}(?:\s+(?:it|that|this|as|an?|the|to|in|into|his|her|their|"
    r"(?:[a-z-]+\s+)?notes?|discharge\s+summary|chart|record)){0,12}\W{0,20}$",
    re.IGNORECASE,
)
LEADING = re.compile(r"^(?:a\s+)?(?:\w+\s)?notes?\s*[-–—,:]\s+", re.IGNORECASE)  # "abc-123 - note: …"
LEADING_ID = re.compile(rf"^(?:(?:patient|pt)\s+)?{PATIENT_ID.pattern}\s*[:,;–-]?\s+", re.IGNORECASE)
BEGUN_BY_ID = re.compile(rf"^(?:(?:patient|pt)\s+)?{PATIENT_ID.pattern}\s*[:,;.–-]\s+", re.IGNORECASE)
NOTE_ORDERED = re.compile(r"\b(?:save|add|file|write|enter|log|record)\s+an?\s+(?:[\w-]+\s+){0,2}note\b", re.IGNORECASE)
POLITE = re.compile(
    r"[\s,.;-]{0,20}\b(?:please|pls|(?:thanks|thank you)(?:\s(?:ma|sir|doc|all|so much|very much|a lot|in advance))?|"
    r"thx|cheers|ta)\b[\s.!?]{0,20}$|\s{0,20}\?{1,20}$",
    re.IGNORECASE,
)


def note_types(text: str) -> list[str]:
    """The kind of note that is said, outside of what the note says; else every kind, an untyped one first."""
    head = text
    for said in set_off(_without_closing(text))[:1]:
        head = head.replace(said, " ")
    said = [kind for found in NAMED.finditer(head) if (kind := _as_said(found[1], found[2]))]
    said = sorted(said, key=lambda kind: not kind.endswith("note"))
    said += [kind for word, kind in SHORT_FOR.items() if re.search(rf"\b{re.escape(word)}\b", head, re.IGNORECASE)]
    for kind in NOTE_TYPES:
        word = kind if kind in KINDS_IN_FULL else kind.removesuffix(" note")
        said += [kind] if re.search(rf"\b{word}\b", head, re.IGNORECASE) else []
    return said[:1] or [UNTYPED_NOTE, *(kind for kind in NOTE_TYPES if kind != UNTYPED_NOTE)]


def _as_said(words: str, noun: str) -> str:
    """The kind that the words before "note" name, as written; "" where they only order or describe one."""
    kind: list[str] = []
    for word in reversed(words.split()):
        if word.lower() in NO_KIND:
            break
        kind.insert(0, word)
    return f"{' '.join(kind)} {noun.lower()}" if kind else ""


def note_texts(text: str) -> list[str]:
    """What a note may say: what is quoted; else what follows a colon, a dash or the sentence that orders it, or what
    stands before the order; else the rest of the question after a cue, its clauses, any of its endings."""
    text = _without_closing(text)
    if marked := set_off(text):
        return marked
    clauses = [part for part in re.split(r"(?<=[.;!?])\s+|\n", text) if len(part.split()) > 1]
    endings = [text[match.start() :] for match in list(TOKEN.finditer(text))[:MAX_TOKENS]]
    return [*_after(NOTE_CUE, text), *clauses, *endings]


def _without_closing(text: str) -> str:
    return CLOSING.sub("", POLITE.sub("", text))


def set_off(text: str) -> list[str]:
    """What is plainly set off as the note's text; several readings where more than one mark leads to it."""
    for mark in (QUOTED, SINGLE_QUOTED):
        if (first := mark.search(text)) and not _within_a_note(text, first.start()):
            return [part.strip() for part in mark.findall(text)]
    ordered_last = LAST_ORDERS.search(text[-200:]) and not COMMAND.match(text)
    if ordered_last and (last := LAST_SENTENCE.match(text)):
        first = FIRST_SENTENCE.match(last[1])
        return [DICTATING.sub("", last[1][first.end() :] if first else last[1])]
    text = FURTHER.sub("", text)
    marks = (COLON, DASH, AFTER_ID, SAID, FIRST_SENTENCE)
    found = [match for mark in marks for match in mark.finditer(text)]
    found = [match for match in found if match.re is COLON or not _within_a_note(text, match.start())]
    marked = [BEGUN_BY_ID.sub("", LEADING.sub("", text[match.end() :])) for match in found]
    marked = [part for part in marked if len(part.split()) > 1 and not COMMAND.match(part)]
    marked = [part for part in marked if not NOTE_ORDERED.search(part)] or marked
    if before := BEFORE.match(text):
        marked.append(LEADING_ID.sub("", before[1]))
    return marked


def _within_a_note(text: str, place: int) -> bool:
    """Whether a place lies in what a colon has begun: "note for abc-123: asked 'when can I go home?', slept"."""
    begun = COLON.search(text)
    return bool(begun) and begun.end() < place and not NOTE_ORDERED.search(text[begun.end() : place])


def _after(mark: re.Pattern, text: str) -> list[str]:
    return [text[match.end() :] for match in mark.finditer(text)]
