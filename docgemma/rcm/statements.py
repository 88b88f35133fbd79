"""Which sentences state something of the patient, and which only address, sign, or ask for something. Pure.

A letterhead "Bayou Spine Clinic" refers nobody to a spine clinic, and a request for an MRI is no MRI that was made.
"""

from collections.abc import Sequence
from typing import Literal

from docgemma.rcm.assertion import hits
from docgemma.rcm.header import is_label, words
from docgemma.rcm.sentences import Sentence, lists, words_of
from docgemma.text.characters import fold

Kind = Literal["statement", "request", "address"]
LONGEST = 12  # words of a line of a letterhead or a signature


def statements(sentences: Sequence[Sentence]) -> tuple[list[Sentence], frozenset[Sentence]]:
    """The sentences without letterheads, margins, address lines and signatures, and which of them only ask for
    something: those count where a plan does, and refute nothing."""
    kinds = [kind_of(one) for one in sentences]
    labels = [at for at, one in enumerate(sentences) if kinds[at] == "address" and is_label(one.text.partition(":")[0])]
    for at, one in enumerate(sentences):  # what stands above the first label of a document is its letterhead
        below = next((label for label in labels if sentences[label].document == one.document), 0)
        if at < below and one.page == sentences[below].page and _proper(one.text) and not one.text.endswith("."):
            kinds[at] = "address"
    kept = [(one, kind) for one, kind in zip(sentences, kinds, strict=True) if kind != "address"]
    return [one for one, _ in kept], frozenset(one for one, kind in kept if kind == "request")


def kind_of(sentence: Sentence) -> Kind:
    """What a sentence is, by its words and the title of its section."""
    data, text = lists("administrative"), sentence.text
    head, colon, rest = text.partition(":")
    label = words_of(head if colon or text == sentence.section else "")
    headed = hits(data["requested"], words_of(sentence.section)) or hits(data["requested"] + data["titles"], label)
    if headed or hits(data["codes"], sentence.words):
        return "request"
    labelled = colon and is_label(head) and " ".join(word.text for word in label) not in data["stating"]
    margin = sentence.section.casefold() in data["margins"]
    address = margin or text.endswith("?") or _signs(sentence) or (labelled and _proper(rest))
    address = address or (bool(hits(data["organisations"], sentence.words)) and _proper(text))
    return "address" if address else "statement"


def _signs(sentence: Sentence) -> bool:
    said, first = sentence.text.split(), " ".join(word.text for word in sentence.words[:2])
    if any(f"{first} ".startswith(f"{form} ") for form in lists("administrative")["signed"]):
        return True
    degree = "," in sentence.text and fold(said[-1].strip(".")) in words()["staff"] - {"pt"}  # "naproxen, PT"
    return _proper(sentence.text) and (fold(said[0].strip(".,")) in words()["doctors"] or degree)


def _proper(text: str) -> bool:
    """Whether a line is all names and numbers: no word in small letters, but those of names and labels."""
    said = [word.strip(".,;:()#&-/'") for word in text.split()]
    small = {part for label in words()["labels"] for part in label.split()} | set(lists("administrative")["small"])
    return 0 < len(said) <= LONGEST and not any(word[:1].islower() and fold(word) not in small for word in said)
