"""Tell whether an entry is ordered plainly, asked about, refused, or unsure: the reader's word for it."""

from docgemma.reading.labels import WRITES
from docgemma.reading.reader import Reading
from docgemma.text.said import CLAUSE_ENDS
from docgemma.text.words import listed, names

SURE = 0.5
PLAINLY = 0.8  # of a write: below, a person is asked whether it is meant


def meant(reading: Reading, message: str) -> str:
    """Whether a write is "ordered" plainly, "asked" about, "refused", or "unsure"; "" where none is mentioned."""
    polarity = reading.polarity
    refusing = names(listed("request_words", "refusing"), message)
    if refusing and any(reading.asks[ask] > SURE for ask in ("rx", "allergy")):
        return "refused"
    others = any(score > SURE for ask, score in reading.asks.items() if ask not in WRITES)
    if not any(reading.asks[ask] > SURE for ask in WRITES) and (others or polarity["refused"] <= PLAINLY):
        return ""
    if asks_of_record(message):
        return "asked"
    entries = [ask for ask in WRITES if reading.asks[ask] > SURE]
    if entries == ["note"] and polarity["asked"] <= SURE and _noted_plainly(message):
        return "ordered"  # "dont prescribe anything, just note it"
    best = max(polarity, key=polarity.__getitem__)
    considered = reading.asks["may"] > SURE and not reading.asks["note"] > SURE
    return "unsure" if best == "ordered" and (considered or polarity[best] < PLAINLY) else best


def _noted_plainly(message: str) -> bool:
    """Whether a clause asks for a note, "note: ?AAA", "just note it", "put that in a note", and does not refuse it."""
    asking, refusing = listed("request_words", "as_note", "noted_back"), listed("request_words", "not_ordering")
    told = [*message.translate(CLAUSE_ENDS).split("\n")]
    asked = [part for part in told if names(asking, part) or part.casefold().split()[-1:] == ["note:"]]
    return any(not names(refusing, part) for part in asked) and not message.rstrip().endswith("?")


def asks_of_record(message: str) -> bool:
    """Whether a message ends with a bare "record?" behind a mark: it asks what is recorded, and orders nothing."""
    said = message.casefold().rstrip(" ?") if message.rstrip().endswith("?") else ""
    ends = [said.removesuffix(end).rstrip() for end in listed("request_words", "on_record") if said.endswith(f" {end}")]
    return any(not before[-1:].isalnum() for before in ends)
