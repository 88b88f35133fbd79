"""The demo as a process: `python -m tests.browser.serve HOME MODEL PORT`; MODEL is edge, scripted, slow or replay.

Prints the address, then `outside …` for every connection or name look-up that would leave this machine.
"""

import ipaddress
import sys
import time
from typing import Any

OURS = ("localhost", "0.0.0.0", "::", "")


def watch(event: str, args: tuple[Any, ...]) -> None:
    """An audit hook: it sees what every library in this process does, whoever calls."""
    if event == "socket.connect" and isinstance(args[1], tuple):
        host = args[1][0]
    elif event == "socket.getaddrinfo":
        host = args[0] or ""
    else:
        return
    host = host.decode() if isinstance(host, bytes) else str(host)
    try:
        inside = ipaddress.ip_address(host).is_loopback
    except ValueError:
        inside = False
    if not inside and host not in OURS:
        print(f"outside {event} {host}", flush=True)


def slow_model():
    """A general answer, word by word, for half a minute: time enough to press Stop."""
    from tests.scripted import ScriptedLLM

    class Slow(ScriptedLLM):
        name = "slow"

        def complete(self, prompt, config, *, node, schema=None, layout="json", on_token=None):
            self.enqueue("intent_classify", {"intent": "DIRECT", "task_summary": "x", "suggested_tool": None})
            self.enqueue("synthesize", "Hypertension is high blood pressure. " * 40)

            def slowly(piece: str) -> None:
                time.sleep(0.1)
                on_token(piece)

            return super().complete(
                prompt, config, node=node, schema=schema, layout=layout, on_token=slowly if on_token else None
            )

    return Slow()


def scripted_model():
    """Answers every question of the scenarios as a model that classifies rightly would."""
    from tests.scenario_model import ScenarioLLM

    return ScenarioLLM()


MODELS = {"slow": slow_model, "scripted": scripted_model}


def main(home: str, model: str, port: int) -> None:
    from docgemma.agent import Agent
    from docgemma.demo import launch
    from docgemma.settings import Settings

    settings = Settings(home=home, sources="offline", model=model if model == "edge" else None)
    agent = None if model == "replay" else Agent(settings, llm=MODELS[model]() if model in MODELS else None)
    blocks = launch(agent, port=port, settings=settings, quiet=True)
    print(blocks.local_url, flush=True)
    sys.stdin.read()  # until the test closes it
    blocks.close()


if __name__ == "__main__":
    sys.addaudithook(watch)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
