"""Losses by name."""

from __future__ import annotations

from typing import TypeVar

from ._base import LOSSES, Loss

Documented = TypeVar("Documented")


def loss_names(task: str) -> tuple[str, ...]:
    """The names of the losses for "regression" or "classification"."""
    return tuple(name for name, loss in LOSSES.items() if task in loss.tasks)


def has_positive_targets(loss: object) -> bool:
    """Whether a loss, or that of this name, has no negative targets; False for what is no loss."""
    found = LOSSES.get(loss) if isinstance(loss, str) else loss
    return getattr(found, "target_range", Loss.target_range)[0] >= 0


def list_losses(documented: Documented) -> Documented:
    """Decorator: in the docstring, put the names in place of <losses>, <regression losses>, <classification losses>."""
    for words, names in (
        ("<losses>", tuple(LOSSES)),
        ("<regression losses>", loss_names("regression")),
        ("<classification losses>", loss_names("classification")),
    ):
        documented.__doc__ = (documented.__doc__ or "").replace(words, ", ".join(f'"{name}"' for name in names))
    return documented


@list_losses
def resolve_loss(loss: str | Loss) -> Loss:
    """The loss behind an estimator's parameter `loss`.

    Parameters
    ----------
    loss : {<losses>} or Loss
        A name from the table `LOSSES`, which has scikit-learn's names, or a loss, which is returned unchanged (for
        other than the default parameters). The targets of "log_loss" are 0 and 1 or probabilities, those of losses for
        classification -1 and 1.

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
            f"loss must be one of {', '.join(map(repr, LOSSES))}, or a Loss such as "
            f"onlinebregman.losses.HuberLoss(epsilon=0.5); got {loss!r}."
        )
    return LOSSES[loss]
