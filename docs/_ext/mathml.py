"""Formulas as MathML, made when the pages are built: browsers draw them without a script and without a network."""

from docutils import nodes
from latex2mathml.converter import convert


def _visit_math(self, node):
    long = "math-long" if len(node.astext()) > 50 else ""  # which may be wider than a small screen
    self.body.append(f'<span class="{long}">{convert(node.astext(), display="inline")}</span>')
    raise nodes.SkipNode


def _visit_displaymath(self, node):
    self.body.append(f'<div class="math-block">{convert(node.astext(), display="block")}</div>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
