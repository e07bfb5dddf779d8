"""Code within text may break after a bracket, a comma, = or /, and within dotted paths; pictures may scroll."""

import re


def _breaks(code: re.Match) -> str:
    return re.sub(r"(?<=[(\[{,=/])(?=[\w\"'&*-])|(?<=[a-z_)]\.)(?=[A-Za-z]{3})", "<wbr>", code[0])


def _change_page(app, page, template, context, doctree):
    if "body" in context:
        body = re.sub(r'(?<=<span class="pre">)[^<]+', _breaks, context["body"])
        body = body.replace('<span class="sig-paren">(</span>', '<span class="sig-paren">(</span><wbr>')
        context["body"] = re.sub(r"<img (?![^>]*_thumb)[^>]*>", r'<span class="picture">\g<0></span>', body)


def setup(app):
    app.connect("html-page-context", _change_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
