"""Pages at 400 pixels: nothing is wider than the screen, unless it scrolls in its own box, and no word of code breaks.

    python docs/narrow.py docs/_build/html

opens each page in Chromium or Chrome, and says that it looked at none where there is no such browser.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path

BROWSERS = "chromium", "chromium-browser", "google-chrome"
WIDTH = 400
LOOK = """<iframe width="%d" height="900"></iframe><pre></pre><script>
const frame = document.querySelector("iframe"), found = [];
const scrolls = (e, top) =>
  e && e !== top && (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement, top));
function look(page) {
  const doc = frame.contentDocument, article = doc.querySelector("article");
  if (!article) return;
  for (const e of doc.querySelectorAll("article *, .bd-header *"))
    if (e.getBoundingClientRect().right > %d + 1 && e.getClientRects().length && !scrolls(e, article))
      return found.push(`${page}: ${e.tagName} is too wide: ${e.textContent.slice(0, 60)}`);
  for (const e of article.querySelectorAll("code .pre"))
    for (const text of [...e.childNodes].filter((node) => node.data))
      for (const word of text.data.matchAll(/\\w+/g)) {
        const range = doc.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        if (range.getClientRects().length > 1) return found.push(`${page}: ${word[0]} is broken`);
      }
}
(async () => {
  for (const page of %s) {
    await new Promise((done) => { frame.onload = done; frame.src = page; });
    look(page);
  }
  document.querySelector("pre").textContent = JSON.stringify(found);
})();
</script>"""


def main(site):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        return print(f"No page was looked at: none of {', '.join(BROWSERS)} is installed.")
    pages = [path.as_uri() for path in sorted(Path(site).resolve().rglob("*.html")) if "_static" not in path.parts]
    with tempfile.TemporaryDirectory() as folder:
        harness = Path(folder, "look.html")
        harness.write_text(LOOK % (WIDTH, WIDTH, json.dumps(pages)), encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
        options += [f"--user-data-dir={folder}/profile", "--virtual-time-budget=10000000", "--dump-dom"]
        dom = subprocess.run([browser, *options, harness.as_uri()], capture_output=True, text=True, timeout=600).stdout
    found = re.search(r"<pre>(\[.*\])</pre>", dom, re.S)
    if found is None:
        sys.exit(f"{browser} did not get through the pages")
    found = json.loads(unescape(found[1]))
    print(f"{len(pages)} pages at {WIDTH} pixels, {len(found)} with a fault", *found, sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main(sys.argv[1])
