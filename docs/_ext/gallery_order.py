"""The order of the gallery's pages: what most readers come for first."""

from pathlib import Path

FIRST = ("nothing_to_tune", "implicit_steps", "eg_many_features", "learning_rates", "metric_stream", "out_of_core_text")


class Order:
    def __init__(self, src_dir: str) -> None:
        pass

    def __call__(self, filename: str) -> tuple[int, str]:
        name = Path(filename).stem.removeprefix("plot_")
        return FIRST.index(name) if name in FIRST else len(FIRST), name
