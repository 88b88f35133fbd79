"""What a language model's prose must not leave out: critical findings of the turn are added word for word. Pure."""

from docgemma.reading.terms import names
from docgemma.rules import known
from docgemma.state import AgentState
from docgemma.text.words import plain

# beginnings of words by which a composed line is critical; a lost warning is a defect
CRITICAL = (
    "boxed warning", "contraindicat", "major", "allergy", "critically", "not checked", "was not found", "not recorded",
    "not answered", "unavailable", "could not", "did not respond", "duplicate", "above the maximum", "deceased",
    "snapshot", "recorded an allergy", "prescribed", "saved", "was read as", "i cannot remove", "no entry was",
    "is not a known drug",
)  # fmt: skip


def must_say(written: str, composed: str, state: AgentState) -> str:
    """The prose, followed by each critical line of the composed answer that it does not carry.

    A line is carried where all of its numbers and most of its words stand in the prose. The patient heads the answer.
    """
    lines = [line for line in composed.splitlines() if line.strip()]
    said = set(plain(written).split())
    lost = [line for line in lines if names(CRITICAL, line) and not _carried(line, said)]
    heads = [line for line in lines if line.startswith("Patient: ")][:1] if known.charts(state) else []
    heads = [line for line in heads if plain(known.charts(state)[0]["result"]["patient"]["name"]) not in plain(written)]
    asked = [
        line for line in lines if state["request"]["measures"] and not _carried(line, said) and _asked_for(line, state)
    ]
    return "\n".join(known.unique([*heads, written, *asked, *lost]))


def _asked_for(line: str, state: AgentState) -> bool:
    return any(names([plain(measure)], line) for measure in state["request"]["measures"])


def _carried(line: str, said: set[str]) -> bool:
    words = [word for word in plain(line).split() if len(word) > 3 or any(map(str.isdigit, word))]
    numbers = {word for word in words if any(map(str.isdigit, word))}
    return numbers <= said and sum(word in said for word in words) >= 0.6 * len(words)
