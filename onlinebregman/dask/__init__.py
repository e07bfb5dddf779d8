"""Many machines: one model of this package, learned from shards of a dask collection. Needs the extra `dask`."""

from ._distributed import DistributedOnline

__all__ = ["DistributedOnline"]
