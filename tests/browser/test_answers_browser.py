"""How an answer looks: its conclusion first, numbers that open the chart or the source, trends as plots."""

import pytest

METFORMIN = "Is metformin ok for John Smith?"
LABEL = "Check FDA warnings for dofetilide"


def top_of(locator) -> float:
    return locator.bounding_box()["y"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_conclusion_is_bold_and_in_view_when_the_answer_is_there(visit, width: str, dark: bool) -> None:
    person = visit("edge", width=width, dark=dark)
    person.asks(METFORMIN)
    lead, chat = person.page.locator("#dg-chat .dg-lead").last, person.page.locator("#dg-chat").bounding_box()
    assert "Caution: metformin for John Smith" in lead.inner_text()
    assert int(lead.evaluate("item => getComputedStyle(item).fontWeight")) >= 600
    person.page.wait_for_timeout(400)
    assert chat["y"] <= top_of(lead) <= chat["y"] + chat["height"] / 2, "a long answer is read from its beginning"
    assert person.page.evaluate("document.documentElement.scrollWidth") <= person.page.viewport_size["width"]
    assert not person.errors


def test_a_number_opens_the_line_of_the_chart_in_its_tab(visit, width: str) -> None:
    person = visit("edge", width=width, touch=width == "phone")
    person.asks(METFORMIN)
    person.clicks("Reasoning", role="tab")
    number = person.page.locator("#dg-chat .dg-answer li", has_text="eGFR (CKD-EPI)").locator("a.dg-cite")
    number.tap() if width == "phone" else number.click()
    line = person.page.locator("#dg-chart tr:focus")
    line.wait_for()
    assert "eGFR (CKD-EPI)" in line.inner_text() and "2026-10-12" in line.inner_text()
    assert line.evaluate("item => getComputedStyle(item).backgroundColor") != "rgba(0, 0, 0, 0)", "it is marked"


def test_a_number_opens_what_was_read_in_the_label_by_keyboard(visit) -> None:
    person = visit("edge")
    person.asks(LABEL)
    person.page.locator("#dg-chat .dg-answer a.dg-cite").last.focus()
    person.page.keyboard.press("Enter")
    opened = person.page.locator("#dg-chat .dg-sources details[open]")
    opened.wait_for()
    assert "creatinine clearance below 20 mL/min" in opened.inner_text()


def test_a_number_of_a_chart_that_is_no_longer_shown_opens_its_source(visit) -> None:
    person = visit("edge")
    person.asks(METFORMIN)
    person.asks("What are the allergies of ghi-789?")
    person.page.locator("#dg-chat .dg-answer").first.locator("a.dg-cite").nth(1).click()
    person.page.locator("#dg-chat .dg-sources li:focus").wait_for()
    assert "Patient Record" in person.page.locator("#dg-chat .dg-sources li:focus").inner_text()


def test_a_trend_is_a_plot_with_its_range_and_change_in_the_answer_and_the_chart(visit) -> None:
    person = visit("edge")
    person.asks("What was John Smith's last eGFR?")
    for where in ("#dg-chat .dg-answer li", "#dg-chart tr"):
        line = person.page.locator(where, has_text="eGFR (CKD-EPI)").first
        assert "change -5" in line.inner_text() and "49" in line.inner_text(), "the values stand beside it as text"
        plot = line.locator("svg.dg-plot")
        assert plot.bounding_box()["width"] == 72 and plot.locator("rect").count() == 1
        points = [pair.split(",") for pair in plot.locator("polyline").get_attribute("points").split()]
        heights = [float(y) for _, y in points]
        assert heights == sorted(heights) and len(set(heights)) == 3, "49, 46 and 41 fall"


def test_answer_and_chart_keep_their_contrast_and_names(visit) -> None:
    from pathlib import Path

    measure = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
    for dark in (False, True):
        person = visit("edge", width="phone" if dark else "desktop", dark=dark)
        person.asks(METFORMIN)
        person.page.locator("#dg-chat .dg-answer li", has_text="eGFR (CKD-EPI)").locator("a.dg-cite").click()
        person.page.locator("#dg-chart tr:focus").wait_for()
        assert person.page.evaluate(measure) == []
