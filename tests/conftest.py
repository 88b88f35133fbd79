"""What tests share: a prepared data home for each, a scripted agent, and the real edge model, loaded once."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path

import jsonschema
import pytest

from docgemma.agent import Agent
from docgemma.ehr.open import open_store
from docgemma.knowledge.sources import open_knowledge
from docgemma.llm import load_llm
from docgemma.paths import PACKAGE
from docgemma.reading.request import read_request
from docgemma.settings import Settings
from docgemma.state import Request
from tests.models import MODEL_HOME
from tests.rules_help import the_reader
from tests.scripted import ScriptedLLM

# by the time they take; what begins last must be short, or one worker waits for the other
LONGEST_FIRST = (
    "test_kaggle test_notebooks test_rcm_golden test_llm_decoding test_kill test_llm_schemas test_demo_browser "
    "test_conversations_browser test_banner_card_browser test_hands_browser test_cli test_api test_mcp_server"
).split()
PARSED: dict[tuple, list[dict]] = {}
CONTRACT = json.loads((PACKAGE / "api" / "report.schema.json").read_text(encoding="utf-8"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own settings must not change what a test sees."""
    for name in [key for key in os.environ if key.startswith("DOCGEMMA_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def prepared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data home as a first start leaves it: record store seeded, snapshot built."""
    home = tmp_path_factory.mktemp("prepared")
    settings = Settings(home=home, sources="offline")
    open_store(settings).close()
    open_knowledge(settings).close()
    return home


@pytest.fixture
def home(prepared_home: Path, tmp_path: Path) -> Path:
    """A copy of it; the model files are everybody's, so that each is made once."""
    copy = Path(shutil.copytree(prepared_home, tmp_path / "home"))
    models = MODEL_HOME / "models"
    models.mkdir(parents=True, exist_ok=True)
    (copy / "models").symlink_to(models)
    return copy


@pytest.fixture
def settings(home: Path) -> Settings:
    return Settings(home=home, sources="offline")


@pytest.fixture(scope="module")
def offline_agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """The edge agent offline, one for all tests of a file."""
    with Agent(Settings(home=tmp_path_factory.mktemp("agent"), sources="offline"), model="edge") as made:
        yield made


@pytest.fixture
def scripted() -> ScriptedLLM:
    return ScriptedLLM()


@pytest.fixture
def agent(settings: Settings, scripted: ScriptedLLM) -> Iterator[Agent]:
    """The whole agent on real stores and tools, with a model that says what the test wrote."""
    with Agent(settings, llm=scripted) as agent:
        yield agent


@pytest.fixture
def read(agent: Agent) -> Callable[..., Request]:
    """Read a message with the shipped reader against the agent's own drugs and record store."""
    return partial(read_request, reader=the_reader(), drugs=agent.drugs, store=agent.store)


@pytest.fixture(scope="session")
def edge_llm():
    """The real edge model, loaded once."""
    llm = load_llm("edge", Settings(home=MODEL_HOME))
    yield llm
    llm.close()


@pytest.fixture
def edge_agent(settings: Settings, edge_llm) -> Iterator[Agent]:
    agent = Agent(settings, llm=edge_llm)
    yield agent
    agent.store.close()
    agent.knowledge.close()


@pytest.fixture
def valid():
    """Check a result against the contract and hand it back."""

    def check(result: dict) -> dict:
        jsonschema.validate(json.loads(json.dumps(result)), CONTRACT)
        return result

    return check


@pytest.fixture
def pages_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PDF that many tests bring is parsed once: that it is read rightly is tests/test_rcm_pdf.py's matter."""
    from docgemma.rcm import pdf

    parse = pdf.pages_of

    def pages_of(path: Path, start: int = 1) -> Iterator[dict]:
        about = path.stat()
        key = (path, start, about.st_mtime_ns, about.st_size)
        if key not in PARSED:
            PARSED[key] = list(parse(path, start))
        yield from deepcopy(PARSED[key])

    monkeypatch.setattr(pdf, "pages_of", pages_of)


@pytest.fixture
def png(tmp_path: Path) -> Path:
    """A small grey picture."""
    from PIL import Image

    path = tmp_path / "picture.png"
    Image.new("L", (64, 48), 120).save(path)
    return path
