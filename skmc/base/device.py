"""Where a fit computes, and how much memory there is."""

from __future__ import annotations

import os

import torch


def resolve_device(device: str | torch.device) -> torch.device:
    """``"auto"`` is CUDA if there is one.

    Parameters
    ----------
    device : str or device
        Where to compute.

    Returns
    -------
    device

    Raises
    ------
    ValueError
        The device does not exist here; the message lists those that do.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        torch.zeros(1, device=resolved).item()
    except (RuntimeError, AssertionError, NotImplementedError, ImportError):
        raise ValueError(
            f"device={str(device)!r} is not available; use 'auto' or one of "
            f"{_available()}."
        ) from None
    return resolved


def _available() -> list[str]:
    found = ["cpu"] + [f"cuda:{k}" for k in range(torch.cuda.device_count())]
    return found + ["mps"] * torch.backends.mps.is_available()


def memory_of(device: torch.device) -> int:
    """Bytes of memory that a device has in all.

    Parameters
    ----------
    device : device
        Where to compute.

    Returns
    -------
    int
    """
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
