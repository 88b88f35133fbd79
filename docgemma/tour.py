"""What `make run` shows: three questions, one down each path, answered by the loaded model with their timelines."""

import sys

from docgemma.agent import Agent
from docgemma.cli.screen import Screen
from docgemma.cli.shared import progress
from docgemma.errors import DocGemmaError

QUESTIONS = (
    ("direct", "What is hypertension?"),
    ("one tool", "Check FDA warnings for dofetilide"),
    ("reactive loop", "Find patient John Smith, check his chart, and verify metformin safety"),
)


def main() -> None:
    screen = Screen()
    with Agent(on_progress=progress) as agent:
        for path, question in QUESTIONS:
            screen.out.print(f"[bold]> {question}[/bold]  [dim]({path})[/dim]")
            screen.result(agent.ask(question))
            screen.out.print()
    screen.out.print('Your turn: .venv/bin/docgemma ask "…"   or   .venv/bin/docgemma chat')


if __name__ == "__main__":
    try:
        main()
    except DocGemmaError as error:
        sys.exit(f"docgemma: {error.line()}")
