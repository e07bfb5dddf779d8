"""Random kernels for tests."""


def density(rng, d, rank=None):
    """A positive semidefinite matrix of trace one."""
    factor = rng.normal(size=(d, rank or d))
    return factor @ factor.T / (factor**2).sum()
