"""What the model was told is not an answer: sentences of its instructions are taken out."""

import re

from docgemma.rules.sentences import split

MIN_WORDS = 4  # fewer words may stand in both by chance


def without_instructions(answer: str, instructions: str) -> tuple[str, list[str]]:
    """The answer without sentences that stand in the instructions, and those sentences.

    Args:
        answer: as the model wrote it.
        instructions: the system prompt; "" removes nothing.
    """
    told, lines = _flat(instructions), {_flat(line) for line in instructions.splitlines()} - {""}
    kept, removed = [], []
    for sentence, gap in split(answer):
        said = _flat(sentence)
        if said and (said in lines or (len(said.split()) >= MIN_WORDS and said in told)):
            removed.append(sentence.strip())
        else:
            kept.append(sentence + gap)
    return "".join(kept).strip(), removed


def _flat(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
