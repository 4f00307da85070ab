"""Searches on a cluster of Dask workers."""

from skmc.distributed.cluster import Client, OneDevice

__all__ = [
    "Client",
    "OneDevice",
]
