"""How a payload becomes text: whole findings, one a line, the most critical first, bounded."""

from collections.abc import Iterable

LIMIT = 1500  # characters of a formatted result


def clip(text: str, limit: int) -> str:
    """The head of a text, cut at the end of a sentence where one is near, else at a word."""
    if len(text) <= limit:
        return text
    head = text[: limit - 2]
    stop = max(head.rfind(". "), head.rfind("; "))
    if stop > limit // 2:
        return head[: stop + 1] + " …"
    return head.rsplit(" ", 1)[0].rstrip(" ,;") + " …"


def sentence(text: str) -> str:
    """With a full stop at its end."""
    text = text.strip()
    return text if not text or text.endswith((".", "…", "!", "?")) else text + "."


def bound(lines: Iterable[str], closing: Iterable[str] = (), limit: int = LIMIT, line_limit: int = 600) -> str:
    """Whole lines while they fit, then how many are missing, so that nothing is dropped in silence; then `closing`,
    which is never dropped."""
    lines = [clip(line, line_limit) for line in lines if line]
    last = [line for line in closing if line]
    left = limit - sum(len(line) + 1 for line in last)
    kept: list[str] = []
    for index, line in enumerate(lines):
        rest = len(lines) - index
        reserve = 0 if rest == 1 else 32  # room for saying how many are missing
        if len(line) + 1 + reserve > left:
            kept.append(f"{rest} further findings not shown.")
            break
        kept.append(line)
        left -= len(line) + 1
    return "\n".join([*kept, *last])


def joined(items: Iterable[str], last: str = "and") -> str:
    """ "a", "a and b", "a, b and c"."""
    items = list(items)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else ""
