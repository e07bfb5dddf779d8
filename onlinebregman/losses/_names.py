"""Losses by name."""

from __future__ import annotations

from ._base import Loss
from .margin import HingeLoss
from .matching import LogisticLoss, PoissonLoss, SquaredLoss
from .residual import AbsoluteLoss, EpsilonInsensitiveLoss, HuberLoss

LOSSES = {
    "squared_error": SquaredLoss(),
    "log_loss": LogisticLoss(),
    "poisson": PoissonLoss(),
    "absolute_error": AbsoluteLoss(),
    "epsilon_insensitive": EpsilonInsensitiveLoss(),
    "huber": HuberLoss(),
    "hinge": HingeLoss(),
    "perceptron": HingeLoss(margin=0.0),
}


def loss_names(task: str) -> tuple[str, ...]:
    """The names of the losses for "regression" or "classification"."""
    return tuple(name for name, loss in LOSSES.items() if task in loss.tasks)


def resolve_loss(loss: str | Loss) -> Loss:
    """The loss behind an estimator's parameter `loss`.

    Parameters
    ----------
    loss : {"squared_error", "log_loss", "poisson", "absolute_error", "epsilon_insensitive", "huber", "hinge", \
            "perceptron"} or Loss
        A name from the table `LOSSES`, which has scikit-learn's names, or a loss, which is returned as it is: the
        way to other parameters than the default ones. The targets of "log_loss" are 0 and 1 or probabilities, those
        of "hinge" and "perceptron" -1 and 1.

    Returns
    -------
    Loss
        The loss.

    Examples
    --------
    >>> from onlinebregman.losses import HuberLoss, resolve_loss
    >>> resolve_loss("perceptron")
    HingeLoss(margin=0.0)
    >>> resolve_loss(HuberLoss(epsilon=0.5))
    HuberLoss(epsilon=0.5)
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in LOSSES:
        raise ValueError(
            f"loss = {loss!r} is not known; use one of {', '.join(map(repr, LOSSES))} "
            "or a Loss such as onlinebregman.losses.HuberLoss(epsilon=0.5)."
        )
    return LOSSES[loss]
