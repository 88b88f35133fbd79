"""A message and what the reader marked in it: spans by channel, and what is left of them. No rules."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from docgemma.reading.reader import Reading, Span
from docgemma.text.clauses import EDGES, masked, unmarked
from docgemma.text.numbers import quantities
from docgemma.text.shorthand import expanded
from docgemma.text.words import clinical, listed, plain


@dataclass(frozen=True)
class Marked:
    """A message and what the reader marked in it. `quoted`: the text of a note, in which nothing else is looked for.
    `people`: where patients are named."""

    message: str
    reading: Reading
    quoted: Sequence[tuple[int, int]] = ()
    people: Sequence[tuple[int, int]] = ()

    def spans(self, *channels: str) -> list[Span]:
        """Spans of these channels outside of quoted text, in order of appearance."""
        others = tuple(clinical("request_words")["no_dose"])  # "5 mg/kg" is a dose
        spans = [
            span for channel in channels for span in self.reading.spans.get(channel, [])
            if channel != "rx.dose" or "/" in span.text or not span.text.casefold().endswith(others)
        ]  # fmt: skip
        drugs = [span for name in ("drug", "rx.drug") for span in self.reading.spans.get(name, []) if name in channels]
        other = listed("drug_words", "procedures", "forms")  # "a spinal" is no drug, nor "soln"; "po" is a route
        none = [span for span in drugs if plain(span.text) in other or not any(map(str.isalpha, span.text))]  # "30/500"
        free = [span for span in spans if not any(start <= span.start < end for start, end in self.quoted)]
        return sorted((span for span in free if span not in none), key=lambda span: span.start)

    def part(self, start: int, stop: int) -> "Marked":
        """What is said and marked between two places, where it stands; nothing of what stands around it."""
        inside = {
            channel: kept for channel, spans in self.reading.spans.items()
            if (kept := [span for span in spans if start <= span.start < stop])
        }  # fmt: skip
        message = masked(self.message, [(0, start), (stop, len(self.message))])
        return replace(self, message=message, reading=replace(self.reading, spans=inside))

    def places(self, *channels: str) -> list[tuple[int, int]]:
        return [(span.start, span.end) for span in self.spans(*channels)]

    def best(self, channel: str) -> str:
        """The surest span of a channel, quoted or not; "" where there is none."""
        spans = self.reading.spans.get(channel, [])
        return max(spans, key=lambda span: span.score).text if spans else ""


def found_at(marked: Marked, phrases: Iterable[str]) -> list[Span]:
    """Where phrases stand as whole words outside of quoted text, each once."""
    told = "".join(char if char.isalnum() else " " for char in f" {masked(marked.message, marked.quoted).casefold()} ")
    found = ((told.find(f" {phrase} "), len(phrase)) for phrase in phrases)
    return [Span(marked.message[at : at + size], at, at + size, 1) for at, size in sorted(found) if at >= 0]


def pieces_of(message: str, spans: Sequence[Span]) -> list[Span]:
    """What is left of spans in a masked message without a command behind it: "24 h. rx it", "bd once INR <2"."""
    pieces, empty = [], listed("request_words", "commands") | listed("request_words", "linking")
    for span in spans:
        for part in message[span.start : span.end].split("\n"):
            text = unmarked(part, EDGES)
            before, behind = message[: span.start].split()[-3:], message[span.end :].split("\n")[0].split()[:1]
            own = any(word[0].isdigit() for word in before) and text.isalpha() and expanded(text, "frequencies") != text
            own = own and not any(word.isalpha() and plain(word) not in empty for word in behind)  # "20 mg on please"
            while text and not own and ((last := plain(text.split()[-1])) in empty or last == "once" != plain(text)):
                text = text[: -len(text.split()[-1])].rstrip(EDGES)
            if own or set(plain(text).split()) - listed("request_words", "linking"):
                start = message.index(text, span.start)
                pieces.append(Span(text, start, start + len(text), span.score))
    return pieces


def within(span: Span, others: Iterable[Span]) -> bool:
    """Whether another one of these spans holds this one."""
    return any(one.start <= span.start and span.end <= one.end and one != span for one in others)


def tells_value(behind: str) -> bool:
    """Whether the words behind a measure tell its value, "QTc today 510": a result, and no instruction."""
    words = behind.replace(", ", "\n").replace(". ", "\n").split("\n")[0].split()
    while words and plain(words[0]) in listed("request_words", "amounting", "lately"):
        words.pop(0)
    return bool(quantities("".join(words[:1])))


def denied(message: str, span: Span) -> bool:
    """Whether a detail is taken back: "not IM", "not the 5 mg"."""
    before = message[: span.start].rstrip()
    words = plain(before).split() if before[-1:].isalnum() else []
    while words:
        if any(f" {' '.join(words)}".endswith(f" {phrase}") for phrase in listed("request_words", "not_ordering")):
            return True
        if words.pop() not in listed("request_words", "stop", "ordering"):
            return False
    return False


def of_drug_behind(marked: Marked, span: Span) -> bool:
    """Whether an instruction is of the drug behind it, "and stop her hctz", and not of the order."""
    between = [marked.message[span.end : start] for start, _ in marked.places("drug", "rx.drug") if start > span.end]
    return any(words.isspace() or plain(words) in listed("request_words", "pointing") for words in between)
