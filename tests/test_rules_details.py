"""Doses, frequencies, dates and closed fields read by word lists."""

import pytest

from docgemma.rules.details import allergy_severity, dates, doses, frequencies, trial_status


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("metformin 500 mg", ["500 mg"]),
        ("500mg or 1g", ["500mg", "1g"]),
        ("10 units of insulin, 0.5 mL", ["10 units", "0.5 mL"]),
        ("1,000 mcg and 2.5-5 mg", ["1,000 mcg", "2.5-5 mg"]),
        ("10 mg/kg/day", ["10 mg/kg/day"]),
        ("two puffs, half a tablet", ["two puffs", "half a tablet"]),
        ("40\n mg", []),
        ("40\tmg", ["40 mg"]),
        ("abc-123 at 5 km, 3 months, 2024", []),
        ("eGFR 28", []),
        ("", []),
    ],
)
def test_doses_are_found_as_written(text, found):
    assert doses(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("metformin BID", ["BID"]),
        ("q6h prn", ["q6h prn"]),
        ("twice daily with meals", ["twice daily with meals"]),
        ("three times a day as needed", ["three times a day as needed"]),
        ("every 8 hours", ["every 8 hours"]),
        ("every 4-6 hours as needed", ["every 4-6 hours as needed"]),
        ("once weekly", ["once weekly"]),
        ("daily at bedtime", ["daily at bedtime"]),
        ("give OD, then BD", ["OD", "BD"]),
        ("2x per day", ["2x per day"]),
        ("cetirizine 10 mg od prn", ["od prn"]),
        ("every 6 hours as needed for pain", ["every 6 hours as needed for pain"]),
        ("8-hourly, or 12 hourly", ["8-hourly", "12 hourly"]),
        ("on alternate days", ["on alternate days"]),
        ("once weekly on Mondays", ["once weekly on Mondays"]),
        ("every 4h when needed", ["every 4h when needed"]),
        ("tid ac", ["tid ac"]),
        ("morning and night", ["morning and night"]),
        ("fortnightly", ["fortnightly"]),
        ("the odds of a bidder on Sunday", []),
        ("", []),
    ],
)
def test_frequencies_are_found_with_all_that_belongs_to_them(text, found):
    assert frequencies(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("born 1970-03-12", ["1970-03-12"]),
        ("12/03/1970 or 12.3.70", ["12/03/1970", "12.3.70"]),
        ("12 March 1970, March 12, 1970 and 1st of May", ["12 March 1970", "March 12, 1970"]),
        ("555-123-4567", []),
    ],
)
def test_dates_are_found_in_several_notations(text, found):
    assert dates(text) == found


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Find recruiting trials for melanoma", "recruiting"),
        ("Any open studies on ALS?", "recruiting"),
        ("trials that are enrolling", "recruiting"),
        ("not yet recruiting trials", "not yet recruiting"),
        ("trials no longer recruiting", "active, not recruiting"),
        ("completed trials in gout", "completed"),
        ("active trials", "active"),
        ("ongoing study of X", "active"),
        ("terminated trials", "terminated"),
        ("Find trials for melanoma", None),
        ("active bleeding, completed the course", None),
        ("", None),
    ],
)
def test_a_trial_status_is_read_where_it_qualifies_trials(text, status):
    assert trial_status(text) == status


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("severe rash", "severe"),
        ("anaphylaxis to penicillin", "severe"),
        ("a life-threatening reaction", "severe"),
        ("moderate hives", "moderate"),
        ("mild itching", "mild"),
        ("SEVERE", "severe"),
        ("not severe, mild", "mild"),
        ("persevere", None),
        ("rash", None),
        ("", None),
    ],
)
def test_an_allergy_severity_is_read_and_never_assumed(text, severity):
    assert allergy_severity(text) == severity
