"""A sentence that was cut short in a prompt must not reach a clinician cut short: it is completed from the evidence."""

from collections.abc import Sequence

MARK = "…"
MIN_CHARS = 12  # a shorter beginning may belong to several lines


def complete(answer: str, evidence: Sequence[str]) -> str:
    """The answer with every line that ends in "…" continued as in the evidence line that says the same so far.

    A line that stands in no evidence line stays as it is.
    """
    lines = [line.strip() for text in evidence for line in text.splitlines()]
    return "\n".join(_completed(line, lines) for line in answer.split("\n"))


def _completed(line: str, lines: Sequence[str]) -> str:
    start = line.rstrip().removesuffix(MARK).rstrip()
    if not line.rstrip().endswith(MARK) or len(start) < MIN_CHARS:
        return line
    found = ((whole, whole.find(start)) for whole in lines if not whole.endswith(MARK))
    return next((whole[at:] for whole, at in found if at >= 0), line)
