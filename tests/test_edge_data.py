"""Training turns: reproducible, apart from the evaluation sets, true to the graph's prompts, rules and grounding."""

import random

import pytest

from docgemma.edge import generate
from docgemma.edge.answers import answer, whole
from docgemma.edge.examples import END, Builder, cases
from docgemma.edge.follow_ups import FollowUps
from docgemma.edge.items import load
from docgemma.edge.lexicon import Lexicon
from docgemma.edge.plans import Plans
from docgemma.edge.questions import Questions
from docgemma.edge.templates import Filled, choose, fill, roughen
from docgemma.edge.worlds import World
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.rules.grounding import ground

TURNS = 60


@pytest.fixture(scope="module")
def drugs(tmp_path_factory):
    return load_drug_names(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def turns():
    return generate.make(TURNS, seed=7, exclude=generate.heldout_questions())[0]


def lexicon(seed: int = 1) -> Lexicon:
    return Lexicon(random.Random(seed))


def test_the_same_seed_makes_the_same_turns(turns):
    again, _ = generate.make(TURNS, seed=7, exclude=generate.heldout_questions())
    assert again == turns
    assert generate.make(5, seed=8)[0] != turns[:5]


def test_every_kind_of_turn_can_be_made_and_nearly_every_argument_is_an_option():
    made, skipped = generate.make(1500, seed=9)
    arguments = sum(branch.task == "args" for turn in made for branch in turn.branches)
    assert len(made) == 1500 and skipped.total() < 0.05 * arguments


def test_no_evaluation_question_is_trained_on(monkeypatch):
    questions = [generate.normal(item["question"]) for name in ("heldout", "dev") for item in load(name)]
    assert generate.heldout_questions() == frozenset(questions)
    first = next(cases(lexicon(3)))[0].question
    made, _ = generate.make(1, seed=3, exclude=frozenset({generate.normal(first)}))
    assert first not in made[0].trunk


def test_a_call_reads_its_share_of_the_turn_and_ends_its_answer(turns):
    tasks = set()
    for turn in turns:
        assert turn.trunk.startswith("<|im_start|>user\n")
        for branch in turn.branches:
            tasks.add(branch.task)
            assert 0 < branch.cut <= len(turn.trunk)
            assert branch.prompt.startswith("\n") and branch.prompt.endswith("<|im_start|>assistant\n")
            assert branch.completion.endswith(END) and branch.completion != END
    assert tasks >= {"intent", "tool", "args", "quality", "answer", "triage", "steps"}


def test_gold_answers_pass_the_grounding_check_that_real_answers_must_pass(drugs):
    builder, found, removed = Builder(lexicon(11), drugs), 0, []
    for case, how in cases(builder.words):
        if how == "whole":
            turn = builder.build(case, True)
            for branch in turn.branches:
                if branch.task == "answer":
                    found += 1
                    text = branch.completion.removesuffix(END)
                    removed += ground(text, [turn.trunk, branch.prompt], drugs, []).removed
        if found == 40:
            break
    assert len(removed) <= 1, removed  # a title that begins in lower case can be read as the end of the last sentence


@pytest.mark.parametrize(
    "name",
    ["direct", "conversation", "reasoning", "check_drug_safety", "check_drug_interactions", "search_medical_literature",
     "find_clinical_trials", "search_patient", "analyze_medical_image"],
)  # fmt: skip
def test_every_pattern_can_be_filled(name):
    from docgemma.edge.slots import Slots
    from docgemma.edge.templates import load as patterns

    words = lexicon()
    for pattern in patterns(name):
        made = fill(pattern, words, Slots(words, "id"))
        assert made.text and not set("[]{}\x01\x02") & set(made.text), pattern


def test_every_tool_can_be_asked_for_by_id_by_name_and_by_pronoun():
    questions, seen = Questions(lexicon(2)), set()
    for _ in range(300):
        for tool in ("get_patient_chart", "prescribe_medication", "add_allergy", "save_clinical_note"):
            case = questions.single(tool)
            how = "pronoun" if case.patient else "name" if case.found_as else "id"
            seen.add((tool, how))
            steps = [name for name, _ in case.plan]
            assert steps == (["search_patient", tool] if how == "name" else [tool])
            assert how != "id" or case.plan[0][1]["patient_id"] in case.question
    assert len(seen) == 12


def test_what_is_refused_is_never_planned():
    words = lexicon(4)
    plans = Plans(words, Questions(words))
    for _ in range(300):
        case = plans.negated()
        tools = {tool for tool, _ in case.plan}
        assert not tools & {"prescribe_medication", "add_allergy", "save_clinical_note"}, case.question


def test_several_steps_are_worked_in_the_order_lookup_reading_knowledge_writes():
    words = lexicon(5)
    plans = Plans(words, Questions(words))
    rank = {
        "search_patient": 0,
        "get_patient_chart": 1,
        "prescribe_medication": 3,
        "add_allergy": 3,
        "save_clinical_note": 3,
    }
    for _ in range(300):
        ranks = [rank.get(tool, 2) for tool, _ in plans.several().plan]
        assert ranks == sorted(ranks) and 1 <= len(ranks) <= 4


def test_a_follow_up_takes_from_the_last_message_what_it_does_not_say():
    words = lexicon(6)
    follow_ups = FollowUps(words, Questions(words))
    case = follow_ups.order_it()
    ((_, args),) = case.plan
    assert args["medication_name"] in case.before and args["medication_name"] not in case.question


def test_noise_never_touches_a_filled_slot():
    words = lexicon(9)
    for _ in range(300):
        made = fill("[Please |]look into the safety of {drug} for me", words, lambda slot: "Qwertzil")
        assert isinstance(made, Filled) and "Qwertzil" in made.text


def test_nested_alternatives_are_decided_from_the_inside():
    assert choose("[a [b|b]|a b] c", lexicon()) == "a b c"
    assert roughen("kept", lexicon(1)).lower().strip(" .?!")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("A whole line.", "A whole line."),
        ("First sentence is long enough to be kept on its own. Second is cut in the …",
         "First sentence is long enough to be kept on its own."),
        ("Nothing ends in this line before it is cut …", "Nothing ends in this line before it is cut."),
    ],
)  # fmt: skip
def test_a_cut_line_becomes_whole_sentences(line, sentence):
    assert whole(line) == sentence


def test_an_invented_result_is_worded_by_the_real_formatter(drugs):
    world = World(lexicon(12))
    result = world.result("check_drug_safety", {"drug_name": "zorvantil"}, "warnings of zorvantil?")
    assert result["formatted_result"].startswith("Zorvantil has ")
    text = answer("warnings of zorvantil?", [result], 600)
    assert text.startswith(result["formatted_result"][:20])
    failed = world.failed("check_drug_safety", {"drug_name": "zorvantil"}, "timeout")
    assert failed["error"] == "The Drug Safety Report was temporarily unavailable. Please try again shortly."
