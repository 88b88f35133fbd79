"""What may be asked: text that is not empty, not huge, and free of characters nobody typed."""

import unicodedata

from docgemma.errors import UsageError
from docgemma.text.words import visible

MAX_CHARS = 20_000


def clean_question(text: str) -> str:
    """The question without control characters and direction marks, in NFC.

    Raises:
        UsageError: nothing is left, or it is longer than 20,000 characters.
    """
    cleaned = unicodedata.normalize("NFC", visible(text)).strip()
    if not cleaned:
        raise UsageError("The question is empty.", hint='Ask something: docgemma ask "What is hypertension?"')
    if len(cleaned) > MAX_CHARS:
        raise UsageError(
            f"The question has {len(cleaned):,} characters; at most {MAX_CHARS:,} can be read.",
            hint="Ask about one part at a time.",
        )
    return cleaned
