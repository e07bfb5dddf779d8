"""The scripts of the gallery run without errors, and draw a figure."""

import subprocess
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("plot_*.py"))

# run in one process, which imports everything once; each starts without figures and names
CODE = """
import runpy, sys, warnings
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
warnings.simplefilter("error")
warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
for script in sys.argv[1:]:
    try:
        runpy.run_path(script)
    except Exception as error:
        error.add_note(f"This was {script}.")
        raise
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures and all(figure.axes for figure in figures), f"{script} draws nothing"
    for figure in figures:
        figure.canvas.draw()  # what cannot be drawn is noticed now
        for ax in figure.axes:
            shown = ax.lines or ax.patches or ax.collections or ax.images
            assert shown, f"{script} leaves axes empty"
    plt.close("all")
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(4))
def test_the_scripts_run(part, tmp_path):
    scripts = SCRIPTS[part::4]
    assert len(scripts) > 3
    subprocess.run([sys.executable, "-P", "-c", CODE, *map(str, scripts)], cwd=tmp_path, check=True)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_have_a_title_and_are_short(script):
    """As the gallery displays them; without network access or local files."""
    text = script.read_text(encoding="utf-8")
    compile(text, str(script), "exec")
    lines = text.splitlines()
    title, rule = lines[1], lines[2]
    assert lines[0] in ('"""', 'r"""') and rule == "=" * len(title) and title[0].isupper()
    assert len(lines) < 90 and "plt.show()" in text
    assert "fetch_" not in text and "open(" not in text and "load_dataset" not in text


def test_the_gallery_has_a_header():
    title, rule, *text = (GALLERY / "GALLERY_HEADER.rst").read_text(encoding="utf-8").splitlines()
    assert rule == "=" * len(title) and text
