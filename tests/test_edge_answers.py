"""What code makes of the edge model's answer: whole findings, none garbled, none left out."""

from docgemma.edge.answers import mended
from tests.test_edge_quality import result

LINES = (
    "Dofetilide has an FDA boxed warning: Start only where the ECG is monitored, for at least 3 days.\n"
    "Dofetilide contraindication: congenital long QT syndrome."
)
LABEL = result("check_drug_safety", {"drug": "dofetilide"}, {"drug_name": "dofetilide"}, LINES)
QUESTION = "Check FDA warnings for dofetilide"


def test_two_warnings_that_the_model_joined_are_given_as_they_stand():
    joined = (
        "Dofetilide has an FDA boxed warning: Start only where the ECG is monitored, for "
        "Dofetilide contraindication: congenital long QT syndrome."
    )
    assert mended(joined, QUESTION, [LABEL], frozenset()) == LINES


def test_a_long_warning_is_not_ended_in_its_middle():
    long = (
        "Dofetilide has an FDA boxed warning: Fatal arrhythmias. " + "Start where it can be watched, " * 9 + "3 days."
    )
    label = result("check_drug_safety", {"drug": "dofetilide"}, {"drug_name": "dofetilide"}, long)
    cut = long[:220] + " Dofetilide contraindication: asthma."
    assert mended(cut, QUESTION, [label], frozenset()) == long


def test_a_whole_copy_stays_as_the_model_wrote_it():
    copied = LINES.replace("\n", " ")
    assert mended(copied, QUESTION, [LABEL], frozenset()) == copied


def test_what_was_left_out_is_added():
    assert mended("See the label.", QUESTION, [LABEL], frozenset()) == f"See the label.\n{LINES}"


def test_without_results_there_is_nothing_to_mend():
    assert mended("It could not be reached.", QUESTION, [], frozenset()) == "It could not be reached."
