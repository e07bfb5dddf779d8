"""Results of measurements, kept in a file, so that those in it need not be measured again."""

import json
from pathlib import Path


class Results(dict):
    """What was measured, by a key that says all that it depends on.

    Parameters
    ----------
    path : Path or None
        The file; None: results are not kept.
    """

    def __init__(self, path: Path | None):
        super().__init__(json.loads(path.read_text()) if path and path.exists() else {})
        self.path = path

    def keep(self, key: str, result) -> None:
        self[key] = result
        if self.path:
            self.path.write_text(json.dumps(self, indent=1))
