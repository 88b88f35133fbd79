"""The demo as a process: `python -m tests.browser.serve HOME MODEL PORT`; MODEL is edge, scripted, or login
(scripted, for `LOGINS`).

Prints the address, then `outside …` for every connection or name look-up that would leave this machine.
"""

import ipaddress
import sys
import time
from typing import Any

LOGINS = [("dr-a", "secret-a"), ("dr-b", "secret-b")]
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


def scripted_model():
    """Answers every question of the scenarios as a model that classifies rightly would.

    What is asked "at length" is answered word by word for half a minute: time enough to press Stop.
    """
    from tests.scenario_model import ScenarioLLM

    class Scripted(ScenarioLLM):
        def _answer(self, node: str, user: str):
            slow = node == "synthesize" and "at length" in user
            return "Hypertension is high blood pressure. " * 40 if slow else super()._answer(node, user)

        def complete(self, prompt, config, *, node, schema=None, on_token=None):
            def slowly(piece: str) -> None:
                time.sleep(0.1)
                on_token(piece)

            write = slowly if on_token and "at length" in prompt.user else on_token
            return super().complete(prompt, config, node=node, schema=schema, on_token=write)

    return Scripted()


def main(home: str, model: str, port: int) -> None:
    from docgemma.agent import Agent
    from docgemma.demo import launch
    from docgemma.settings import Settings

    settings = Settings(home=home, sources="offline", model=model if model == "edge" else None)
    llm = scripted_model() if model in ("scripted", "login") else None
    agent = Agent(settings, llm=llm)
    blocks = launch(agent, port=port, quiet=True, auth=LOGINS if model == "login" else None)
    print(blocks.local_url, flush=True)
    sys.stdin.read()  # until the test closes it
    blocks.close()


if __name__ == "__main__":
    sys.addaudithook(watch)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
