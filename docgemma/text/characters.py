"""Characters: accents folded, invisible ones dropped; one way for the whole package."""

import unicodedata

from docgemma.errors import UsageError

MAX_CHARS = 20_000  # of a question

# letters that NFKD does not take apart
FOLDS = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "ß": "ss", "þ": "th", "ð": "d"})
# control, format (bidi marks, zero width, tag characters), private use, surrogate, unassigned
INVISIBLE = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})


def fold(text: str) -> str:
    """Lower case without accents: "Müller" and "MULLER" are one."""
    if text.isascii():
        return text.casefold()
    # twice: decomposing can bring capitals to light, and lower case can compose anew
    lower = unicodedata.normalize("NFKD", text).casefold().translate(FOLDS)
    decomposed = unicodedata.normalize("NFKD", lower)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def visible(text: str) -> str:
    """The text without control characters, direction marks and zero-width characters; line breaks and tabs stay."""
    if text.isprintable():
        return text
    return "".join(char for char in text if char in "\n\r\t\v\f" or unicodedata.category(char) not in INVISIBLE)


def clean_question(text: str) -> str:
    """The question in NFC, without control characters and direction marks.

    Raises:
        UsageError: nothing is left, or it is longer than 20,000 characters.
    """
    cleaned = unicodedata.normalize("NFC", visible(text)).strip()
    if not cleaned:
        raise UsageError("The question is empty.", hint='Ask something: docgemma ask "What is hypertension?"')
    if len(cleaned) > MAX_CHARS:
        said = f"The question has {len(cleaned):,} characters; at most {MAX_CHARS:,} can be read."
        raise UsageError(said, hint="Ask about one part at a time.")
    return cleaned
