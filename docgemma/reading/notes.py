"""The note of a message: where its text stands, and its kind."""

from dataclasses import replace

from docgemma.reading.labels import WRITES
from docgemma.reading.marked import Marked, found_at, within
from docgemma.reading.meant import SURE
from docgemma.reading.reader import Reading, Span
from docgemma.text.clauses import quoted
from docgemma.text.said import CLAUSE_ENDS, demands
from docgemma.text.words import listed, names, plain

UNTYPED = "clinical note"
NOTING = ("noting_plainly", "beside_noting", "fillers", "opening", "commands", "pointing", "note_head")
FEW = 4  # words that may stand between a note's text and the colon before it, or the end of its sentence


def with_notes(message: str, reading: Reading) -> tuple[Reading, list[Span], list[Span]]:
    """The reading with the note that a message asks for in other words, "just note it"; where notes stand; and the
    clause that tells what happened with a drug and is no allergy."""
    if headed := _headed(message, reading):
        asks = {ask: 0.0 if ask in (*WRITES, "change", "fix") else score for ask, score in reading.asks.items()}
        named = {name: spans for name, spans in reading.spans.items() if name in ("name", "id")}
        spans = {**named, "note.text": [headed]}
        return replace(reading, asks={**asks, "note": 1.0}, spans=spans), [headed], []
    entered = any(reading.asks[ask] > SURE for ask in ("rx", "allergy"))
    before = _told_before(message, reading)
    if before and not (entered or reading.asks["note"] > SURE or message.rstrip().endswith("?")):
        reading = replace(reading, asks={**reading.asks, "note": 1.0})  # "don't add an allergy, just note it"
    if reading.asks["note"] <= SURE:
        return reading, [], []
    notes = reading.spans.get("note.text", [])
    pasted = quoted(message, notes[0].start) if notes else ""
    outside = {*plain(message.replace(pasted, " ")).split()} if pasted else set[str]()
    if pasted and not listed("request_words", "noting_plainly", "as_note") & outside:  # the quoted fax asks for it
        return replace(reading, asks={**reading.asks, "note": 0.0}), [], []
    if entered:  # a word of an order is no note beside it
        notes = [span for span in notes if " " in span.text]
    elif before and not within(before[0], notes):
        notes = before
    told = _told_in_note(message, reading)
    return reading, notes or told, told


def _headed(message: str, reading: Reading) -> Span | None:
    """What stands behind a sentence that only asks for the note that was offered: "ok do the note. Ozempic to go up".
    None where it may be an entry of its own."""
    head, _, text = message.partition(". ")
    words, told = {*plain(head).split()}, f" {plain(text)} "
    named = any(span.end <= len(head) for name in ("name", "id") for span in reading.spans.get(name, []))
    asked = {"the", "note"} <= words <= listed("request_words", *NOTING) and not named and "please" not in words
    if not (asked and text) or message.rstrip().endswith("?"):
        return None
    altering = any(f" {word} " in told for word in listed("request_words", "altering", "halting") | {"to go"})
    entry = {*told.split()} & listed("request_words", "allergy_words") or any(map(demands, text.split(". ")))
    entry = entry or ("rx.drug" in reading.spans and not altering)
    return None if entry else Span(text, len(message) - len(text), len(message), 1)


def _told_in_note(message: str, reading: Reading) -> list[Span]:
    """The clause that tells what happened with a drug, where it goes into a note and no allergy is spoken of."""
    told = [span for channel in ("alg.subst", "alg.react") for span in reading.spans.get(channel, [])]
    spoken = listed("request_words", "allergy_words") & {*plain(message).split()}
    if not told or spoken or not names(listed("request_words", "as_note"), message):
        return []
    ended = f"{message.translate(CLAUSE_ENDS).replace(':', chr(10))}\n"
    start = ended.rfind("\n", 0, min(span.start for span in told)) + 1
    text = message[start : ended.index("\n", max(span.end for span in told))].strip()
    while plain(text.split()[0]) in listed("request_words", "noting_plainly", "commands"):
        text = text.partition(" ")[2]
    start = message.index(text, start)
    return [Span(text, start, start + len(text), 1)]


def _told_before(message: str, reading: Reading) -> list[Span]:
    """The sentences before the one that puts them into a note, "rash on X suspected. Just note it"."""
    marked, folded = Marked(message, reading), message.casefold()
    back = [span for span in found_at(marked, listed("request_words", "as_note"))
            if plain(folded[: span.start]).split()[-1:] in (["it"], ["that"], ["this"])]  # fmt: skip
    back += found_at(marked, listed("request_words", "noted_back"))
    start = message.rfind(". ", 0, back[0].start) + 1 if back and ":" not in message[back[0].end :] else 0
    first = min((end for begin, end in marked.places("name", "id") if begin == 0), default=0)
    text = message[first:start].strip(" .,;:-–—")
    return [Span(text, at := message.index(text, first), at + len(text), 1)] if text else []


def read_note(marked: Marked, span: Span) -> dict[str, str]:
    """A note's kind, as said ("progress note"), and its text, to the end of a sentence that ends soon."""
    kind = marked.best("note.kind")
    between = quoted(marked.message, span.start)
    if plain(kind) in ("", "note", "notes", "entry", "of note", "of"):
        kind = UNTYPED
    following = marked.message[span.end :].split("\n")[0]
    following = following[: stop + 1] if (stop := following.find(". ")) >= 0 else following
    others = [item.start for spans in marked.reading.spans.values() for item in spans if item.start >= span.end]
    whole = len(following.split()) <= FEW and not any(at < span.end + len(following) for at in others)
    before, colon, led = marked.message[: span.start].rpartition(": ")  # "document: hold metformin" holds it
    named = any(start < span.start and end > len(before) for start, end in marked.people)
    led = "" if plain(led) and listed("request_words", "noting_plainly") >= {*plain(led).split()} else led
    led = led if colon and len(led.split()) <= FEW and ". " not in led and not named else ""
    doubt = marked.message[: span.start].rstrip()  # "?clozapine myocarditis" is suspected, and no fact
    led = led or "?" * (doubt[-1:] == "?" and not doubt[-2:-1].isalnum())
    edges = ' \t\n"“”‘’:;,-–—'
    return {"note_type": kind, "note_text": between or (led + span.text + (following if whole else "")).strip(edges)}
