"""The models whose columns are standardised by default, with columns as they are: the algorithms of the papers."""

from functools import partial

import onlinebregman

MirrorDescentClassifier = partial(onlinebregman.MirrorDescentClassifier, standardize=False)
MirrorDescentRegressor = partial(onlinebregman.MirrorDescentRegressor, standardize=False)
ScaleInvariantClassifier = partial(onlinebregman.ScaleInvariantClassifier, standardize=False)
ScaleInvariantRegressor = partial(onlinebregman.ScaleInvariantRegressor, standardize=False)
