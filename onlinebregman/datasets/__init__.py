"""Data sets: the synthetic streams of the papers, the balance scale, and CSV files from your own folder."""

from ._balance_scale import load_balance_scale
from ._files import list_datasets, load_dataset
from ._synthetic import make_positive_sphere, make_scaled_regression

__all__ = ["list_datasets", "load_balance_scale", "load_dataset", "make_positive_sphere", "make_scaled_regression"]
