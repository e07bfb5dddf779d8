"""Scripts that measure; they import each other by name, as files and as modules, `python -m benchmarks.NAME`.

`python -m` searches the checkout first, where the package is not compiled: the installed one is meant.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
others = [path for path in sys.path if Path(path).resolve() != HERE.parent]
sys.path[:] = [str(HERE), str(HERE / "peers"), *others, str(HERE.parent)]
