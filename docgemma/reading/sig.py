"""Prescription shorthand in plain words: "bd" is twice daily, "7/7" for 7 days. What is not known stays as written."""

from functools import lru_cache

from docgemma.reading.words import clinical, plain

# of "7/7", "2/52", "3/12": days, weeks, months (BNF, prescription writing)
FRACTIONS = {"7": "day", "52": "week", "12": "month"}
LETTERS = 4  # of a shorthand within a phrase; "daily" in "twice daily" is a word
SUFFIXES = {"d": "day", "day": "day", "w": "week", "wk": "week", "week": "week", "mo": "month", "month": "month"}


@lru_cache(maxsize=4)
def shorthand(kind: str) -> dict[str, str]:
    """`frequencies`, `routes` or `forms`: as written (plain) -> in words."""
    return {
        plain(str(said)).replace(".", ""): entry["plain"] for entry in clinical("sig")[kind] for said in entry["said"]
    }


def expand(text: str, *kinds: str) -> str:
    """The text with each known shorthand in words.

    Args:
        text: "bd prn", "PO".
        kinds: which lists to look in, "frequencies", "routes".
    """
    known = {said: words for kind in kinds for said, words in shorthand(kind).items()}
    whole = plain(text.replace(".", ""))
    if whole in known:
        return known[whole]
    words = [plain(word.replace(".", "")) for word in text.split()]
    return " ".join(
        known.get(word, said) if len(word) <= LETTERS else said for word, said in zip(words, text.split(), strict=True)
    )


def duration(text: str) -> str | None:
    """ "7/7", "x3d", "5d", "x 10 days", "for 2/52" in words; None where the text is no duration."""
    words = plain(text).removeprefix("for ").removeprefix("x").strip()
    head, _, tail = words.partition("/")
    if head.isdigit() and tail in FRACTIONS:
        return _lasting(int(head), FRACTIONS[tail])
    digits = "".join(char for char in words if char.isdigit())
    unit = words.removeprefix(digits).strip(" -").removesuffix("s") if digits else ""
    return _lasting(int(digits), SUFFIXES[unit]) if digits and unit in SUFFIXES else None


def _lasting(count: int, unit: str) -> str:
    return f"for {count} {unit}{'' if count == 1 else 's'}"
