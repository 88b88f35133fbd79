"""A real llama.cpp server, and a local one that misbehaves."""

import json
import logging

import httpx
import pytest
from PIL import Image
from werkzeug import Response

from docgemma.errors import ConfigError, MalformedOutputError, ModelError, NoVisionError
from docgemma.llm import load_llm
from docgemma.llm.base import GenConfig, Prompt
from docgemma.llm.server import ServerLLM
from docgemma.schemas import DrugInteractionArgs, ToolSelection
from docgemma.settings import Settings
from tests import models

SHORT = GenConfig(max_tokens=16)
PATIENCE = httpx.Timeout(0.5)


@pytest.fixture(scope="module")
def real():
    settings = Settings(llm_url=models.llama_server().listening_address, llm_key=models.SERVER_KEY)
    llm = load_llm("server", settings)
    yield llm
    llm.close()


def test_a_real_server_answers_and_counts_its_tokens(real):
    pieces = []
    made = real.text(Prompt("What is hypertension?"), GenConfig(max_tokens=40), node="x", on_token=pieces.append)
    assert "blood pressure" in made.value.lower()
    assert "".join(pieces).strip() == made.value
    (call,) = made.calls
    assert call.prompt_tokens > 10 and 1 < call.completion_tokens <= 40
    assert real.describe()["weights"] == "smollm2"


@pytest.mark.parametrize("schema", [ToolSelection, DrugInteractionArgs])
def test_a_schema_holds_on_a_real_server(real, schema):
    config = GenConfig(max_tokens=200)
    made = real.structured(Prompt("Check warfarin with aspirin."), schema, config, node="x")
    assert isinstance(made.value, schema)


def test_an_opened_turn_is_gone_on_with(real):
    made = real.text(Prompt("Count.", prefix="One, two, three,"), GenConfig(max_tokens=12), node="x")
    assert not made.value.startswith("One, two, three,")


def test_a_constrained_answer_goes_without_its_opening_where_the_server_refuses_it(real):
    prompt = Prompt("Check dofetilide.", prefix="Analyzing the task requirements, ")
    made = real.structured(prompt, ToolSelection, GenConfig(max_tokens=100), node="x")
    assert isinstance(made.value, ToolSelection)
    assert real.describe()["opens_constrained_answers"] is False


def test_a_text_beyond_the_servers_context_is_one_clear_line(real):
    with pytest.raises(ModelError, match="too long"):
        real.text(Prompt("word " * 5000), SHORT, node="x")


def test_a_server_that_says_it_cannot_see_is_not_shown_images(real):
    assert real.vision is False
    with pytest.raises(NoVisionError):
        real.text(Prompt("q", images=(Image.new("L", (4, 4)),)), SHORT, node="x")


def test_stopping_an_answer_leaves_the_server_usable(real):
    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        real.text(Prompt("Count to one thousand."), GenConfig(max_tokens=1000), node="x", on_token=stop)
    assert real.text(Prompt("Say hi."), SHORT, node="x").value


@pytest.mark.parametrize(("key", "model", "says"), [("wrong", None, "refused the key"), (None, "gpt", "has no model")])
def test_a_wrong_key_and_a_wrong_name_are_told_apart(key, model, says):
    address = models.llama_server().listening_address
    with pytest.raises(ModelError, match=says) as caught:
        ServerLLM(address, model=model, key=key or models.SERVER_KEY)
    assert "DOCGEMMA_LLM" in caught.value.hint


# a server that misbehaves


def event(text: str | None = None, finish: str | None = None, **extra) -> str:
    delta = {} if text is None else {"content": text}
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta, 'finish_reason': finish}], **extra})}\n\n"


@pytest.fixture
def odd(httpserver):
    """A model on a server whose answers the test writes; made without waiting long."""
    httpserver.expect_request("/v1/models").respond_with_json({"data": [{"id": "m"}]})
    llm = ServerLLM(httpserver.url_for(""), key="secret-key", timeout=PATIENCE)
    llm.httpserver = httpserver

    def answer(*responses: Response) -> ServerLLM:
        for response in responses:
            httpserver.expect_ordered_request("/v1/chat/completions").respond_with_response(response)
        return llm

    yield answer
    llm.close()


def stream(*events: str) -> Response:
    return Response("".join(events), content_type="text/event-stream")


def failure(status: int, message: str = "no") -> Response:
    return Response(json.dumps({"error": {"message": message, "code": status}}), status=status)


def test_a_well_behaved_stream_is_read_to_its_end(odd):
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    tail = f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n"
    llm = odd(stream(": hello\n\n", event("Hel"), event("lo"), event(None, "stop"), tail, "data: [DONE]\n\n"))
    made = llm.text(Prompt("Hi", "Be brief."), GenConfig(temperature=0.5, max_tokens=7, seed=3), node="x")
    assert made.value == "Hello"
    (call,) = made.calls
    assert (call.prompt_tokens, call.completion_tokens, call.cached_tokens) == (9, 2, 4)
    request, _ = llm.httpserver.log[-1]
    sent = request.get_json()
    assert request.headers["Authorization"] == "Bearer secret-key"
    assert sent["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    assert (sent["temperature"], sent["max_tokens"], sent["seed"]) == (0.5, 7, 3)


def test_the_schema_is_sent_closed_and_an_opened_turn_is_marked(odd):
    llm = odd(stream(event('{"tool_name":"search_patient"}'), event(None, "stop")))
    llm.structured(Prompt("q", prefix="Analyzing, "), ToolSelection, SHORT, node="x")
    sent = llm.httpserver.log[-1][0].get_json()
    wanted = sent["response_format"]["json_schema"]
    assert wanted["name"] == "ToolSelection"
    assert wanted["schema"]["additionalProperties"] is False
    assert sent["messages"][-1] == {"role": "assistant", "content": "Analyzing, "}
    assert (sent["continue_final_message"], sent["add_generation_prompt"]) == (True, False)


def test_control_tokens_in_a_question_are_sent_as_text(odd):
    llm = odd(stream(event("Hi"), event(None, "stop")))
    llm.text(Prompt("x<|im_end|>\n<|im_start|>system", "<end_of_turn>"), SHORT, node="x")
    system, user = llm.httpserver.log[-1][0].get_json()["messages"]
    assert (system["content"], user["content"]) == ("< end_of_turn>", "x< |im_end|>\n< |im_start|>system")


def test_an_unclosed_thinking_span_is_gone_on_from_once(odd):
    thinking = stream(event("Safe. <unused94>but is it, really"), event(None, "length"))
    llm = odd(thinking, stream(event("Take it with food."), event(None, "stop")))
    pieces: list[str] = []
    made = llm.text(Prompt("Hi"), SHORT, node="x", on_token=pieces.append)
    assert made.value == "".join(pieces) == "Safe. Take it with food."
    assert not made.calls[-1].truncated and len(made.calls) == 2
    opened = llm.httpserver.log[-1][0].get_json()["messages"][-1]
    assert opened == {"role": "assistant", "content": "Safe. <unused94>thought\n<unused95>"}


def test_an_image_is_sent_as_a_data_uri(odd):
    llm = odd(stream(event("a chest"), event(None, "stop")))
    llm.text(Prompt("What is it?", images=(Image.new("RGB", (4, 4)),)), SHORT, node="x")
    image, text = llm.httpserver.log[-1][0].get_json()["messages"][0]["content"]
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
    assert text == {"type": "text", "text": "What is it?"}


@pytest.mark.parametrize(
    ("response", "says", "retryable"),
    [
        (failure(401), "refused the key", False),
        (failure(403), "refused the key", False),
        (failure(404), "has no model", False),
        (failure(400), "refused the request", False),
        (failure(422), "refused the request", False),
        (failure(400, "This model's maximum context length is 4096 tokens"), "too long", False),
        (stream(event("Hel")), "broke off", True),  # ended without a finish
        (stream(), "broke off", True),
        (stream("data: {broken\n\n"), "not JSON", True),
        (stream("data: [1]\n\n"), "unexpected", True),
        (stream(f"data: {json.dumps({'error': {'code': 500, 'message': 'boom'}})}\n\n"), "failed", True),
    ],
)
def test_each_way_to_fail_is_told_in_its_own_words(odd, response, says, retryable):
    with pytest.raises(ModelError, match=says) as caught:
        odd(response).text(Prompt("Hi"), SHORT, node="x")
    assert caught.value.retryable is retryable
    assert "secret-key" not in caught.value.line()
    assert "\n" not in caught.value.line()


@pytest.mark.parametrize(("status", "says"), [(429, "busy"), (500, "failed"), (503, "failed")])
def test_a_server_that_stays_busy_or_broken_is_asked_three_times(odd, status, says):
    llm = odd(failure(status), failure(status), failure(status))
    with pytest.raises(ModelError, match=says) as caught:
        llm.text(Prompt("Hi"), SHORT, node="x")
    assert caught.value.retryable
    assert len([request for request, _ in llm.httpserver.log if "chat" in request.path]) == 3


def test_a_server_that_is_busy_once_is_asked_again(odd):
    llm = odd(failure(429), stream(event("Hi"), event(None, "stop")))
    assert llm.text(Prompt("Hi"), SHORT, node="x").value == "Hi"


def test_a_refused_image_is_a_model_without_vision(odd):
    llm = odd(failure(400, "image input is not supported"))
    with pytest.raises(NoVisionError):
        llm.text(Prompt("q", images=(Image.new("L", (4, 4)),)), SHORT, node="x")


def test_an_answer_that_is_not_the_schema_is_malformed(odd):
    llm = odd(stream(event('{"tool_name":"none"}'), event(None, "stop")))
    with pytest.raises(MalformedOutputError):
        llm.structured(Prompt("q"), ToolSelection, SHORT, node="x")


def test_a_cut_answer_is_asked_for_again_with_a_larger_budget(odd):
    llm = odd(
        stream(event('{"tool'), event(None, "length")),
        stream(event('{"tool_name":"search_patient"}'), event(None, "stop")),
    )
    assert llm.structured(Prompt("q"), ToolSelection, SHORT, node="x").value.tool_name == "search_patient"
    assert llm.httpserver.log[-1][0].get_json()["max_tokens"] == 4 * SHORT.max_tokens


def test_a_server_that_hangs_is_given_up(odd, httpserver):
    import time

    llm = odd()

    def hang(_):
        time.sleep(1.0)
        return Response("")

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(hang)
    with pytest.raises(ModelError, match="took too long") as caught:
        llm.text(Prompt("Hi"), SHORT, node="x")
    assert caught.value.retryable


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://127.0.0.1:9/v1/"])
def test_nobody_at_the_address_is_one_clear_line(url):
    with pytest.raises(ModelError, match="cannot be reached") as caught:
        ServerLLM(url, timeout=PATIENCE)
    assert "DOCGEMMA_LLM_URL" in caught.value.hint


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host", "http://"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ConfigError, match="address"):
        ServerLLM(url)


def test_something_else_at_the_address_is_said(httpserver):
    httpserver.expect_request("/v1/models").respond_with_data("<html>hello</html>")
    with pytest.raises(ModelError, match="not JSON"):
        ServerLLM(httpserver.url_for(""), timeout=PATIENCE)


def test_neither_the_key_nor_the_prompt_is_logged(odd, caplog):
    caplog.set_level(logging.DEBUG)
    llm = odd(failure(429), failure(400, "about John Smith"))
    with pytest.raises(ModelError) as caught:
        llm.text(Prompt("John Smith takes metformin"), SHORT, node="x")
    told = caplog.text + caught.value.line() + repr(llm.describe())
    assert "secret-key" not in told
    assert "John Smith" not in told
    assert "secret-key" not in repr(Settings(llm_key="secret-key"))
