"""The looks: fonts of the reader's own machine, and colours whose contrast holds in light and dark."""

import gradio as gr

SYSTEM = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")
MONO = ("ui-monospace", "Consolas", "monospace")


def theme() -> gr.themes.Base:
    """A plain theme. Buttons and muted texts keep at least 4.5 to 1 in both modes (a browser test measures it)."""
    return gr.themes.Base(
        primary_hue="teal", secondary_hue="teal", neutral_hue="slate", font=SYSTEM, font_mono=MONO,
    ).set(
        button_primary_background_fill="*primary_700", button_primary_background_fill_hover="*primary_800",
        button_primary_background_fill_dark="*primary_700", button_primary_background_fill_hover_dark="*primary_600",
        button_primary_text_color="white", button_primary_text_color_dark="white",
        button_cancel_background_fill="*neutral_50", button_cancel_background_fill_dark="*neutral_800",
        button_cancel_text_color="#b91c1c", button_cancel_text_color_dark="#fca5a5",
        body_text_color_subdued="*neutral_600", body_text_color_subdued_dark="*neutral_300",
        block_info_text_color="*neutral_600", block_info_text_color_dark="*neutral_300",
        block_label_text_color="*neutral_700", block_label_text_color_dark="*neutral_200",
        input_placeholder_color="*neutral_500", input_placeholder_color_dark="*neutral_400",
        link_text_color="*primary_800", link_text_color_dark="*primary_300",
        link_text_color_hover="*primary_900", link_text_color_hover_dark="*primary_200",
        link_text_color_visited="*primary_800", link_text_color_visited_dark="*primary_300",
    )  # fmt: skip
