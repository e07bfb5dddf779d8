"""The R package opera (Dralliag/opera): 65 forecasts of French electricity demand, 398 days, mean error in %."""

import os
from pathlib import Path

import numpy as np
import pandas as pd

from onlinebregman import ExpertMixtureRegressor


def rows():
    data = pd.read_csv(Path(os.environ["ONLINEBREGMAN_DATA"]) / "published" / "opera_regional_load.csv.gz")
    forecasts, load = data.filter(like="expert_").to_numpy(), data["target"].to_numpy()

    def error(strategy):
        model = ExpertMixtureRegressor(strategy=strategy, history=len(load), shuffle=False).fit(forecasts, load)
        mixed = (model.weights_history_ * forecasts).sum(axis=1)
        return f"{100 * np.abs(mixed / load - 1).mean():.2f}"

    yield (
        "regional experts, mean error in %",
        "ML-Poly 1.38, BOA 1.52, best expert 2.03",
        "inst/extdata/regional_experts.RDS; opera's mixtures",
        ", ".join(f"{strategy} {error(strategy)}" for strategy in ("ml_poly", "boa", "eg", "average")),
    )
