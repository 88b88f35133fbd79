"""Key values kept between prompts: what is found is what was stored, shared by token, within its bound of bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from docgemma.llm.prefix_cache import PrefixCache, common_length  # noqa: E402

TOKEN_BYTES = 2 * 2 * 4  # two layers of one key and one value of four bytes

prompts = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=1, max_size=12)


def key_values(tokens: list[int]):
    """Two layers whose keys are the tokens themselves, and whose values are their negatives."""
    keys = torch.tensor(tokens, dtype=torch.float32).reshape(1, 1, -1, 1)
    return [(keys, -keys), (keys + 100, -keys - 100)]


def add(cache: PrefixCache, tokens: list[int]) -> None:
    cache.add(tokens, lambda start, stop: key_values(tokens[start:stop]))


def tokens_of(pieces) -> list[int]:
    for piece in pieces:
        assert torch.equal(piece[1][1], -100 - piece[0][0])
    return [int(value) for piece in pieces for value in piece[0][0].reshape(-1)]


@given(prompts)
def test_what_is_found_is_the_longest_stored_beginning_with_its_own_key_values(stored: list[list[int]]) -> None:
    cache = PrefixCache(10**6)
    for tokens in stored:
        add(cache, tokens)
    for wanted in [[0, 1, 2, 0, 1, 2, 0, 1], *stored]:
        length, pieces = cache.find(wanted)
        assert length == max(common_length(tokens, wanted) for tokens in stored)
        assert tokens_of(pieces) == wanted[:length]


@given(prompts, st.integers(0, 12))
def test_the_bound_holds_and_what_is_left_is_still_right(stored: list[list[int]], limit_tokens: int) -> None:
    cache = PrefixCache(limit_tokens * TOKEN_BYTES)
    for tokens in stored:
        add(cache, tokens)
        assert cache.nbytes == cache.describe()["tokens"] * TOKEN_BYTES <= cache.limit_bytes
        length, pieces = cache.find(tokens)
        assert tokens_of(pieces) == tokens[:length]


def test_what_two_prompts_share_is_stored_once() -> None:
    cache = PrefixCache(10**6)
    add(cache, [1, 2, 3, 4])
    add(cache, [1, 2, 3, 5, 6])
    assert cache.describe()["tokens"] == 6


def test_a_beginning_that_many_share_outlives_the_single_prompts() -> None:
    cache = PrefixCache(8 * TOKEN_BYTES)
    for last in range(20):
        add(cache, [1, 2, 3, 4, 5, 100 + last])
    assert cache.find([1, 2, 3, 4, 5, 999])[0] == 5


def test_a_prompt_larger_than_the_bound_is_not_kept() -> None:
    cache = PrefixCache(3 * TOKEN_BYTES)
    add(cache, [1, 2, 3, 4])
    assert (cache.nbytes, cache.find([1, 2, 3, 4])) == (0, (0, []))


def test_splitting_frees_the_stretch_that_was_cut() -> None:
    cache = PrefixCache(10**6)
    add(cache, list(range(100)))
    add(cache, [0, 1, 999])
    _, (piece,) = cache.find([0, 1])
    assert piece[0][0].untyped_storage().nbytes() == 2 * 4


def test_a_cleared_cache_holds_nothing() -> None:
    cache = PrefixCache(10**6)
    add(cache, [1, 2, 3])
    cache.clear()
    assert (cache.nbytes, cache.find([1, 2, 3])[0]) == (0, 0)
