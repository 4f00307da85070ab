"""A Dask client and a worker plugin for searches on a cluster."""

from skmc.distributed.cluster import Client, OneDevice

__all__ = ["Client", "OneDevice"]
