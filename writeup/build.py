"""Makes everything in this folder that shows a figure: texts, pictures, and the judge's tour as a page.

python writeup/build.py            # all of it; a minute, since the notebook is run
python writeup/build.py --texts    # texts and pictures only
python writeup/build.py --notebooks    # also the outputs of all notebooks
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import nbformat
import plots
from facts import ROOT, Facts
from texts import HERE, OF_THE_RUN, README, TEXTS, readme, render

NOTEBOOK, PAGE = HERE / "writeup.ipynb", HERE / "writeup.html"
TIMEOUT_S = 600


def build_texts(facts: Facts) -> None:
    for text in [*TEXTS, *([OF_THE_RUN] if facts.run() else [])]:
        (HERE / text).write_text(render(text, facts), encoding="utf-8")
    README.write_text(readme(facts), encoding="utf-8")
    plots.save(HERE / "figures", facts)


def build_page() -> None:
    """Run the notebook and keep it, with its outputs, as one page that fetches nothing."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    run(notebook, HERE)
    PAGE.write_text(as_page(notebook), encoding="utf-8")


def build_notebooks() -> None:
    """Run every notebook and keep its outputs: what is read where nothing is executed."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as home:  # each begins with the shipped records
            os.environ["DOCGEMMA_HOME"] = home
            run(notebook, path.parent)
        notebook.metadata.pop("widgets", None)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = [output for output in cell.outputs if is_lasting(output)]
        path.write_text(nbformat.writes(notebook).replace(str(ROOT), ".") + "\n", encoding="utf-8")


def is_lasting(output: nbformat.NotebookNode) -> bool:
    """Whether an output says something later and elsewhere: no widget, no local server, no folder of this machine."""
    data, text = output.get("data", {}), str(output)
    places = ("127.0.0.1", str(Path.home()), tempfile.gettempdir())
    return "application/vnd.jupyter.widget-view+json" not in data and not any(place in text for place in places)


def run(notebook: nbformat.NotebookNode, folder: Path) -> None:
    from nbclient import NotebookClient

    NotebookClient(
        notebook, timeout=TIMEOUT_S, record_timing=False, resources={"metadata": {"path": str(folder)}}
    ).execute()


def as_page(notebook: nbformat.NotebookNode) -> str:
    """HTML with the page's own style; code is folded away, outputs are open."""
    from nbconvert import HTMLExporter
    from pygments.formatters import HtmlFormatter

    exporter = HTMLExporter(template_file=str(HERE / "page.html.j2"), embed_images=True)
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    body, _ = exporter.from_notebook_node(
        notebook, resources={"code_style": HtmlFormatter(style="default").get_style_defs(".highlight")}
    )
    return body.replace(str(ROOT), ".")  # no path of the machine that made it


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", action="store_true", help="do not run the notebook")
    parser.add_argument("--notebooks", action="store_true", help="run and keep all the others, too")
    chosen = parser.parse_args()
    facts = Facts()
    build_texts(facts)
    if not chosen.texts:
        for name in [key for key in os.environ if key.startswith("DOCGEMMA_")]:
            del os.environ[name]  # the page shows what a newcomer would see
        build_page()
        if chosen.notebooks:
            build_notebooks()
    print(f"{len(facts.quotes)} figures in {', '.join(TEXTS)}; left out for want of data: {len(facts.missing)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
