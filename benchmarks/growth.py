"""How an edge turn grows: seconds against prompt length, conversation length and loop steps.

    python benchmarks/growth.py [--repeats N] [--threads N]

Prompt length: one closed choice at the end of a prompt of so many tokens, nothing of it known, and again behind the
same beginning. History: a new question after so many earlier turns of one conversation. Loop steps: whole turns by the
number of tools that they ran, each on a model that has kept nothing.
"""

import argparse
import random
import time
from typing import Any, Literal

from common import Report, middle, prepared, say, spread
from paths import ask

from docgemma.agent import Agent
from docgemma.llm.base import GenConfig, Prompt
from docgemma.llm.load import load_edge
from docgemma.schemas import Schema
from docgemma.settings import Settings
from docgemma.tour import QUESTIONS

LENGTHS = (50, 100, 200, 400, 800)  # words, about as many tokens; an edge prompt seldom has more
HISTORY = (0, 1, 2, 4, 8)
STEPS = (
    "What is hypertension?",
    "Check FDA warnings for dofetilide",
    "Find patient Maria Garcia and check her chart",
    QUESTIONS[2][1],
    "Find patient John Smith, check his chart, verify metformin safety, and find studies on metformin",
)
FILLER = "the patient was seen in clinic with mild pain no fever stable blood pressure and reports better sleep"
DRUGS = ("clozapine", "warfarin", "metformin", "amiodarone", "lisinopril", "digoxin", "methotrexate", "simvastatin")


class Answer(Schema):
    label: Literal["yes", "no"]


def prompt_length(settings: Settings, repeats: int) -> list[list[Any]]:
    llm, config = load_edge(settings), GenConfig(max_tokens=8)
    dice, rows = random.Random(0), []
    for length in LENGTHS:
        new, known, tokens = [], [], 0
        for repeat in range(repeats):
            text = f"{repeat} {length} " + " ".join(dice.choices(FILLER.split(), k=length))
            for task, found in (("Is there pain?", new), ("Is there fever?", known)):
                start = time.perf_counter()
                done = llm.complete(Prompt(f"{text}\n{task}"), config, node="bench", schema=Answer, layout="lines")
                found.append(time.perf_counter() - start)
                tokens = done.prompt_tokens
        rows.append([tokens, len(new), middle(new), spread(new), 1000 * middle(new) / tokens, middle(known)])
    llm.close()
    return rows


def history_length(settings: Settings, repeats: int) -> list[list[Any]]:
    """The question is another one each time, so that its own tokens are always new."""
    found: dict[int, list[tuple[float, int]]] = {turns: [] for turns in HISTORY}
    for repeat in range(repeats):
        with Agent(settings, llm=load_edge(settings)) as agent:
            thread = None
            for turn in range(max(HISTORY) + 1):
                drug = DRUGS[(turn + 3 * repeat) % len(DRUGS)]
                start = time.perf_counter()
                result = agent.ask(f"Check FDA warnings for {drug} ({turn})", thread=thread)
                if turn in found:
                    found[turn].append((time.perf_counter() - start, result["tokens"]["prompt"]))
                thread = result["thread"]
    return [
        [turns, len(items), middle([item[0] for item in items]), spread([item[0] for item in items]),
         round(middle([item[1] for item in items]))]
        for turns, items in found.items()
    ]  # fmt: skip


def loop_steps(settings: Settings, repeats: int) -> list[list[Any]]:
    turns = {question: [] for question in STEPS}
    for repeat in range(repeats):
        say(f"loop steps, repetition {repeat + 1} of {repeats}")
        for question in STEPS:
            turns[question] += ask(settings, lambda: load_edge(settings), [question])
    rows = []
    for question, found in turns.items():
        seconds, first = [turn.seconds for turn in found], found[0]
        calls, prompt, kept, new, *_ = first.figures()
        rows.append(
            [len(first.tools), question, len(found), middle(seconds), spread(seconds), calls, prompt, kept, new]
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    about = " ".join(__doc__.partition("\n\n")[2].partition("\n\n")[2].split())
    with prepared(threads=chosen.threads) as settings:
        report = Report("growth", about, threads=chosen.threads, repeats=chosen.repeats)
        head = ["prompt tokens", "n", "new, s", "middle half", "ms a token", "known beginning, s"]
        report.table("prompt length", head, prompt_length(settings, chosen.repeats))
        head = ["earlier turns", "n", "s a turn", "middle half", "prompt tokens"]
        report.table("conversation length", head, history_length(settings, chosen.repeats))
        head = ["tools", "question", "n", "s", "middle half", "calls", "prompt tokens", "of these kept", "new tokens"]
        report.table("loop steps", head, loop_steps(settings, chosen.repeats))


if __name__ == "__main__":
    main()
