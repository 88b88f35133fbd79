"""Characters: accents folded, invisible ones dropped; one way for the whole package."""

import unicodedata

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
