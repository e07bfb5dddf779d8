"""The command line: `python -m onlinebregman demo|learn|predict|test`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from . import __version__
from ._command_line import add_commands


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m onlinebregman",
        description="Online learning with Bregman divergences, as scikit-learn estimators.",
    )
    parser.add_argument("--version", action="version", version=f"onlinebregman {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="apply the estimators to real data, in under a minute",
        description="Learns streams without tuning, a metric for nearest neighbours, a regression at rates of any "
        "size, and a kernel from distances, on data that comes with scikit-learn or Python. Prints tables and writes "
        "one figure.",
    )
    demo.add_argument(
        "--output",
        type=Path,
        default=Path("onlinebregman-demo.png"),
        metavar="FILE.png",
        help="where to write the figure (default: %(default)s; .pdf and .svg work as well)",
    )
    demo.add_argument("--quick", action="store_true", help="a few seconds: less data, fewer splits, settings and pairs")
    demo.set_defaults(run=_demo)
    add_commands(commands)
    options = parser.parse_args(arguments)
    with suppress(ValueError):  # of another thread than the main one; what is half written is removed
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # Ctrl-C is ignored in the background
    try:
        options.run(options)
        print(end="", flush=True)  # the last lines may not be taken, either
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130
    except (OSError, ValueError, ImportError, MemoryError) as error:
        if not isinstance(error, BrokenPipeError):  # by `predict ... | head`, which stops reading
            notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
            print(f"{parser.prog} {options.command}: {error}{notes}".replace("\n", " "), file=sys.stderr)
        try:
            print(end="", flush=True)
        except OSError:  # what is not taken, the exit would flush again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def _demo(options: argparse.Namespace) -> None:
    from ._demo import run_demo

    run_demo(options.output, quick=options.quick)


if __name__ == "__main__":
    sys.exit(main())
