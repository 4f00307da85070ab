"""The device of a fit and its memory."""

from __future__ import annotations

import os

import torch


def resolve_device(device: str | torch.device) -> torch.device:
    """Convert the parameter ``device`` of an estimator into a device.

    Parameters
    ----------
    device : str or torch.device
        Name of the device. "auto" is CUDA if there is a CUDA device, else the CPU.

    Returns
    -------
    torch.device

    Raises
    ------
    ValueError
        The device is not available; the message lists the available devices.
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
    """Return the total memory of a device.

    Parameters
    ----------
    device : torch.device
        CUDA device or CPU.

    Returns
    -------
    int
        Number of bytes.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
