"""A local stand-in of the public APIs. `from tests.standin import standin` gives a test the running fixture."""

from collections.abc import Iterator

import pytest

from tests.standin.server import Standin, start

__all__ = ["Standin", "standin", "start"]


@pytest.fixture
def standin() -> Iterator[Standin]:
    """The four APIs, running; `standin.urls` are keyword arguments of Settings."""
    with start() as running:
        yield running
