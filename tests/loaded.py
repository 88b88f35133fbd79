"""What `tests.forked` forks from: a process that has run a turn, so that modules, reader and drug names are loaded."""

from tempfile import TemporaryDirectory

from docgemma.agent import Agent
from docgemma.cli import main  # noqa: F401
from docgemma.settings import Settings

with TemporaryDirectory() as home, Agent(Settings(home=home, sources="offline"), model="edge") as agent:
    assert agent.ask("Check FDA warnings for dofetilide")["answer"]
