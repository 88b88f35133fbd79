"""What a language model's prose must not leave out: critical findings of the turn are added word for word. Pure."""

from docgemma.rules import known
from docgemma.state import AgentState
from docgemma.text.words import listed, names, plain


def must_say(written: str, lead: str, composed: str, state: AgentState) -> str:
    """The prose below the conclusion, preceded by the lines of the composed answer that were asked for and followed by
    the critical ones, where it does not carry them: all of a line's numbers and most of its words. The patient comes
    before the prose."""
    said, lines = set(plain(f"{lead} {written}").split()), [line for line in composed.splitlines() if line.strip()]
    lost = [line for line in lines if not _carried(line, said)]
    measures = [plain(measure) for measure in state["request"]["measures"]]
    asked = [line for line in lost if names(measures, line)]
    critical = [line for line in lost if names(listed("claims", "critical"), line)]
    charts = known.charts(state)
    headed = bool(charts) and plain(charts[0]["result"]["patient"]["name"]) not in plain(written)
    heads = [line for line in lines if line.startswith("Patient: ")][:1] if headed else []
    return "\n".join(known.unique([lead, *heads, written, *asked, *critical]))


def _carried(line: str, said: set[str]) -> bool:
    words = [word for word in plain(line).split() if len(word) > 3 or any(map(str.isdigit, word))]
    numbers = {word for word in words if any(map(str.isdigit, word))}
    return numbers <= said and sum(word in said for word in words) >= 0.6 * len(words)
