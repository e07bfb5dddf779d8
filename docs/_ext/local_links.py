"""After a build of HTML: every link within the site leads somewhere, and each estimator to its page, or it fails."""

import importlib
import inspect
import pkgutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.errors import SphinxError

import onlinebregman


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


def _links_of_estimators():
    """(class, the page within the site to which its HTML representation links)."""
    for info in pkgutil.iter_modules(onlinebregman.__path__, "onlinebregman."):
        module = importlib.import_module(info.name) if not info.name.rpartition(".")[2].startswith("_") else None
        for value in (getattr(module, name) for name in getattr(module, "__all__", ())):
            if inspect.isclass(value) and hasattr(value, "_get_doc_link"):
                yield value, object.__new__(value)._get_doc_link().rpartition("/stable/")[2]


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
    dead += [f"{value}: {link}" for value, link in _links_of_estimators() if not (link and (root / link).is_file())]
    if dead:
        raise SphinxError("Links that lead nowhere:\n" + "\n".join(dead))


def setup(app):
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
