"""What may be asked: text that is not empty, not huge, and free of characters nobody typed."""

import unicodedata

from docgemma.errors import UsageError

MAX_CHARS = 20_000


def clean_question(text: str) -> str:
    """The question without control characters and direction marks, in NFC.

    Raises:
        UsageError: nothing is left, or it is longer than 20,000 characters.
    """
    kept = "".join(_typed(char) for char in text)
    cleaned = unicodedata.normalize("NFC", kept).strip()
    if not cleaned:
        raise UsageError("The question is empty.", hint='Ask something: docgemma ask "What is hypertension?"')
    if len(cleaned) > MAX_CHARS:
        raise UsageError(
            f"The question has {len(cleaned):,} characters; at most {MAX_CHARS:,} can be read.",
            hint="Ask about one part at a time.",
        )
    return cleaned


def _typed(char: str) -> str:
    kind = unicodedata.category(char)
    if char in "\n\t" or kind not in ("Cc", "Cf", "Cs", "Co"):
        return char
    return " " if kind == "Cc" else ""
