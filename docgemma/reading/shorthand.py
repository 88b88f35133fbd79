"""Prescription shorthand in plain words: "bd" is twice daily, "7/7" for 7 days. What is not known stays as written."""

from functools import lru_cache

from docgemma.text.words import clinical, plain

# of "7/7", "2/52", "3/12" (BNF, prescription writing), and of "x3d", "5 days"
UNITS = {"/7": "day", "/52": "week", "/12": "month", "d": "day", "day": "day", "w": "week", "wk": "week",
         "week": "week", "mo": "month", "month": "month"}  # fmt: skip
LETTERS = 4  # of a shorthand within a phrase; "daily" in "twice daily" is a word


@lru_cache(maxsize=4)
def _shorthand(kind: str) -> dict[str, str]:
    """`frequencies` or `routes`: as written (plain) -> in words."""
    return {_undotted(str(said)): entry["plain"] for entry in clinical("sig")[kind] for said in entry["said"]}


def expand(text: str, *kinds: str) -> str:
    """The text with each known shorthand in words.

    Args:
        text: "bd prn", "PO".
        kinds: which lists to look in, "frequencies", "routes".
    """
    known = {said: words for kind in kinds for said, words in _shorthand(kind).items()}
    if (whole := _undotted(text)) in known:
        return known[whole]
    words = [(word, _undotted(word)) for word in text.split()]
    return " ".join(known.get(word, said) if len(word) <= LETTERS else said for said, word in words)


def duration(text: str) -> str | None:
    """ "7/7", "x3d", "5d", "x 10 days", "for 2/52" in words; None where the text is no duration."""
    words = plain(text).removeprefix("for ").removeprefix("x").strip()
    rest = words.lstrip("0123456789")
    count, unit = words[: len(words) - len(rest)], UNITS.get(rest.strip(" -").removesuffix("s"))
    return f"for {int(count)} {unit}{'' if int(count) == 1 else 's'}" if count and unit else None


def _undotted(text: str) -> str:
    return plain(text.replace(".", ""))
