"""Tell whether an entry is ordered plainly, asked about, refused, or unsure; find the order at the end of a story."""

from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise

from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.reader import Reader, Reading
from docgemma.text.clauses import quoted
from docgemma.text.said import clauses
from docgemma.text.words import begun_with, listed, names, plain

SURE = 0.5
PLAINLY = 0.8  # of a write: below, a person is asked whether it is meant
FEW = 2  # drugs in one line that are no list yet
PASTED = 3  # words in quotation marks that are more than a name
SENTENCES = str.maketrans(dict.fromkeys(".;!?", "\n"))


def meant(reading: Reading, message: str, reader: Reader, named: Collection[int]) -> str:
    """Whether a write is "ordered" plainly, "asked" about, "refused", or "unsure"; "" where none is mentioned.

    Args:
        named: where the drugs of the message stand.
    """
    polarity = reading.polarity
    refusing = names(listed("request_words", "refusing"), message)
    if refusing and any(reading.asks[ask] > SURE for ask in ("rx", "allergy")):
        return "refused"
    others = any(score > SURE for ask, score in reading.asks.items() if ask not in WRITES)
    if not any(reading.asks[ask] > SURE for ask in WRITES) and (others or polarity["refused"] <= PLAINLY):
        return ""
    back = _lists(message, named) or _asks_back(message, reading, reader)
    if not back and _pleaded(message, reading):
        return "ordered"
    best = "asked" if back else max(polarity, key=polarity.__getitem__)
    considered = reading.asks["may"] > SURE and not reading.asks["note"] > SURE
    return "unsure" if best == "ordered" and (considered or polarity[best] < PLAINLY) else best


def _lists(message: str, named: Collection[int]) -> bool:
    """Whether drugs are listed and nobody is told to enter them: "outside fill history, what is new:" with a drug on
    each line; three in one line beside a question; one dose against another, "apixaban 5 mg bd vs 2.5 mg bd"."""
    asking, rest = [part for part in clauses(message.replace("?", "?\n")) if _asking(part, message, named)], message
    for part in asking:
        rest = rest.replace(part, " ")
    told = pairwise(["", *plain(rest).split()])
    commands, nouns = listed("request_words", "ordering") - {"rx"}, listed("request_words", "persons", "possessive")
    if any(word in commands and before not in nouns for before, word in told):
        return False
    lines, compared = {message[:start].count("\n") for start in named}, {"vs", "versus"} & set(plain(message).split())
    return bool(named) and bool(compared or len(lines) > 1 or (len(named) > FEW and asking))


def _asking(part: str, message: str, named: Collection[int]) -> bool:
    """Whether a clause asks: not "do that", nor "could you do her" with a drug."""
    words, at = plain(part).split(), message.find(part)
    asked_to = listed("request_words", "requesting") & {*words} and any(at <= start < at + len(part) for start in named)
    begun = begun_with(words) in listed("request_words", "questioning") and not asked_to
    told = words[:2] in (["do", "that"], ["do", "it"])
    return (begun and not told) or names(listed("request_words", "listing"), part)


def _pleaded(message: str, reading: Reading) -> bool:
    """Whether an order with its dose is asked for where it stands: "no statin yet?? atorva 20 nocte pls"."""
    names, doses = (reading.spans.get(channel, []) for channel in ("rx.drug", "rx.dose"))
    plainly = reading.asks["rx"] > SURE > reading.polarity["refused"]
    if not plainly or len(names) != 1 or not any(span.start >= names[0].end for span in doses):
        return False
    start, end = names[0].start, max(span.end for span in doses)
    behind = message[end:].translate(SENTENCES).replace(",", "\n").split("\n")[0]
    words = plain(_sentence_before(message, start).rpartition(",")[2]).split()
    asking = begun_with(words) in listed("request_words", "questioning") or message[end + len(behind) :][:1] == "?"
    return not asking and bool({*words, *plain(behind).split()} & listed("request_words", "pleading"))


def _sentence_before(message: str, at: int) -> str:
    """What stands before a place in its own sentence."""
    return message[:at].translate(SENTENCES).replace(" - ", "\n").rpartition("\n")[2]


def _asks_back(message: str, reading: Reading, reader: Reader) -> bool:
    """Whether an entry is a question, "azithro 500 od 3/7?", or a wish, "she wants tramadol", where nobody is asked to
    prepare it ("would you please"); one without a command that ends in a question, "paracetamol 1 g qds, happy?"; and
    an order in any but a look-up: "heparin 5000 q8, she's on eliquis. give both?"."""
    told = f" {plain(message)} "
    for phrase in listed("request_words", "no_commands"):
        told = told.replace(f" {phrase} ", " ")
    words, drugs = told.split(), [span.start for span in reading.spans.get("rx.drug", [])]
    commands = {*words[:1], *(listed("request_words", "commands") & set(words))} & listed("request_words", "ordering")
    asked_to = listed("request_words", "requesting") & set(words)
    before = f" {plain(_sentence_before(message, min(drugs)))} " if drugs else ""
    pasted = quoted(message, min(drugs)) if drugs and reading.asks["note"] <= SURE else ""
    rest = set(plain(message.replace(pasted, "")).split())
    if len(pasted.split()) > PASTED and not listed("request_words", "ordering") & rest:
        return True  # "pasted: 'start allopurinol 100 mg'. ok?"
    ends = [next(iter(char for char in message[start:].replace(". ", "\n") if char in ";!?\n"), "") for start in drugs]
    if set(ends) == {"?"} and not (commands or asked_to):
        return True  # "toradol 15 q6 for the pain? next pemetrexed mon"
    if not asked_to and any(f" {phrase} " in before for phrase in listed("request_words", "considering")):
        return True
    summed = message.rstrip().endswith(("=", "..", "…")) or any(
        f" {phrase} " in told for phrase in listed("request_words", "calculating")
    )
    begun = listed("request_words", "beginning") & set(before.split())  # "start it for her, tell him how to take it"
    if summed and not (commands or asked_to or begun):
        return True  # "infliximab 5 mg/kg for him, how many mg"; "flagyl 500 tid, cheap so.."
    if not message.rstrip().endswith("?"):
        return False
    at = max(message.rstrip("? ").rfind(mark) for mark in (". ", "! ", "? ", "\n"))
    if drugs and at < max(drugs):
        return not asked_to
    if drugs and not commands:
        return not set(reader.read(message[at + 1 :].strip()).asked(SURE)) & set(TOPICS)
    return not commands and told.endswith(tuple(f" {phrase} " for phrase in listed("request_words", "asking_back")))


def order_of_story(reading: Reading, message: str, reader: Reader) -> Reading:
    """The reading; of a story that is read as a note, where no word of noting stands, the order that a part of it gives
    plainly by itself: "bp 148/96, reg phoned w plan. labetalol 100 mg bd"."""
    told = listed("request_words", "noting_plainly") & set(plain(message).split())
    if told or "?" in message or reading.asks["note"] <= SURE or reading.asks["rx"] > SURE:
        return reading
    for part in filter(str.strip, message.translate(SENTENCES).split("\n")):
        alone, at = reader.read(part), message.find(part)
        if alone.asks["rx"] > PLAINLY < alone.polarity["ordered"] and {"rx.drug", "rx.dose"} <= set(alone.spans):
            kept = {name: found for name, found in reading.spans.items() if not name.startswith(("rx.", "note."))}
            moved = {
                name: [replace(span, start=span.start + at, end=span.end + at) for span in found]
                for name, found in alone.spans.items() if name.startswith("rx.")
            }  # fmt: skip
            asks = {**reading.asks, "note": 0, "rx": alone.asks["rx"]}
            return replace(reading, asks=asks, polarity=alone.polarity, spans={**kept, **moved})
    return reading
