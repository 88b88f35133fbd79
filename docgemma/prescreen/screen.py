"""Judge the criteria of shortlisted trials one by one: met, not met or unknown, with the sentence that decides.

The sentence is chosen by number, so that it is always the note's own; unknown is worth half. Verdicts are kept by note
and trial in a private file of the data home.
"""

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from pydantic import create_model

from docgemma.errors import ModelError
from docgemma.knowledge.label_text import sentences
from docgemma.llm.base import LLM, GenConfig, Prompt
from docgemma.paths import private_file, private_folder
from docgemma.prescreen.concepts import prompts
from docgemma.prescreen.records import Criterion, Study
from docgemma.schemas import Schema
from docgemma.settings import Settings

FOLDER = "screened"  # of the data home
AT_ONCE = 4
WORTH = {"met": 1.0, "unknown": 0.5, "not_met": 0.0}
GENERATION = GenConfig(temperature=0.0, max_tokens=48)
NO_SENTENCE = "none"
NO_JUDGE = "The criteria are not judged: that needs a medical model, and none is loaded."


def split_criteria(text: str) -> list[tuple[Literal["inclusion", "exclusion"], str]]:
    """The criteria of a trial's eligibility text, each with its kind. Indented points go with the point above them."""
    found: list[tuple[Literal["inclusion", "exclusion"], str]] = []
    kind: Literal["inclusion", "exclusion"] = "inclusion"
    for line in text.replace("\\", "").splitlines():
        words = line.strip().lstrip("*-•0123456789.) ").strip()
        lowered = words.lower().rstrip(":").strip()
        if "exclusion criteria" in lowered and len(lowered) < 60:
            kind = "exclusion"
        elif "inclusion criteria" in lowered and len(lowered) < 60:
            kind = "inclusion"
        elif words and line.startswith("  ") and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {words}")
        elif words:
            found.append((kind, words))
    return found


def criteria_texts(text: str) -> tuple[str, str]:
    """The inclusion criteria and the exclusion criteria, one a line."""
    parts = split_criteria(text)
    inclusion = "\n".join(words for kind, words in parts if kind == "inclusion")
    exclusion = "\n".join(words for kind, words in parts if kind == "exclusion")
    return inclusion, exclusion


def screen(note: str, studies: Sequence[Study], llm: LLM, settings: Settings) -> dict[str, list[Criterion]]:
    """Judge every criterion of every trial; a trial without criteria text, or whose judging failed, is left out.

    Args:
        note: without names, ids and addresses.

    Raises:
        ModelError: no verdict could be had of any trial.
    """
    parts, judged = [part for line in note.splitlines() for part in sentences(line)], {}
    failed: ModelError | None = None
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for study in studies:
            asked = "\0".join([note, study["id"], study["criteria"], llm.name])
            file = private_folder(settings.home / FOLDER) / f"{hashlib.sha256(asked.encode()).hexdigest()[:40]}.json"
            if file.exists():
                judged[study["id"]] = json.loads(file.read_text(encoding="utf-8"))
            elif criteria := split_criteria(study["criteria"]):
                try:
                    verdicts = list(pool.map(lambda item: _judge(parts, item[0], item[1], llm), criteria))
                except ModelError as error:
                    failed = error
                    continue
                private_file(file).write_text(json.dumps(verdicts, ensure_ascii=False), encoding="utf-8")
                judged[study["id"]] = verdicts
    if failed and not judged:
        raise failed
    return judged


def fitness(criteria: Sequence[Criterion]) -> float:
    """How far a patient fits, 0 to 1: an exclusion that is met counts as an inclusion that is not."""
    worth = [WORTH[item["verdict"]] if item["kind"] == "inclusion" else 1 - WORTH[item["verdict"]] for item in criteria]
    return round(sum(worth) / len(worth), 3) if worth else 0.5


def prompt(parts: Sequence[str], kind: str, text: str) -> Prompt:
    numbered = "\n".join(f"{number}. {part}" for number, part in enumerate(parts, 1))
    return Prompt(system=prompts()["criterion"], user=f"Note:\n{numbered}\n\n{kind.capitalize()} criterion: {text}")


def _judge(parts: Sequence[str], kind: Literal["inclusion", "exclusion"], text: str, llm: LLM) -> Criterion:
    numbers: Any = Literal[tuple([*(str(number) for number in range(1, len(parts) + 1)), NO_SENTENCE])]
    verdict: Any = Literal["met", "not_met", "unknown"]
    schema = create_model("Verdict", __base__=Schema, verdict=(verdict, ...), sentence=(numbers, ...))
    value: Any = llm.structured(prompt(parts, kind, text), schema, GENERATION, node="screen").value
    # nothing is decided without a sentence
    decided: Any = value.verdict if value.sentence != NO_SENTENCE else "unknown"
    sentence = parts[int(value.sentence) - 1] if decided != "unknown" else ""
    return Criterion(text=text, kind=kind, verdict=decided, sentence=sentence)
