"""After a build of HTML: every link within the site leads somewhere, or the build fails."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.errors import SphinxError


class _Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        self.links += [values[name] for name in ("href", "src") if values.get(name)]


def _check(app, error):
    if error is not None or app.builder.format != "html":
        return
    root = Path(app.outdir).resolve()
    pages = {path: _Page(path) for path in sorted(root.rglob("*.html")) if "_static" not in path.parts}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            scheme, host, file, _, anchor = urlsplit(link)
            if scheme or host:
                continue
            target = (path.parent / unquote(file)).resolve() if file else path
            found = target.exists() and (not anchor or target not in pages or unquote(anchor) in pages[target].anchors)
            if not found:
                dead.append(f"{path.relative_to(root)}: {link}")
    if dead:
        raise SphinxError("Links that lead nowhere:\n" + "\n".join(dead))


def setup(app):
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
