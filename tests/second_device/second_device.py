"""The device of backend.cpp: built at first use, then registered as "second"."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils import cpp_extension

SOURCE = Path(__file__).with_name("backend.cpp")
# Not the current card, which is second:0. Or another device, such as "cuda".
DEVICE = os.environ.get("SKMC_TEST_DEVICE", "second:1")


class Module:
    """What PyTorch asks about the devices of a kind, as of `torch.cuda`."""

    @staticmethod
    def is_available() -> bool:
        return True

    is_initialized = is_available

    @staticmethod
    def device_count() -> int:
        return 2

    @staticmethod
    def current_device() -> int:
        return backend().current()

    @staticmethod
    def set_device(device: torch.device | int) -> None:
        index = device if isinstance(device, int) else device.index
        backend().set_current(index)

    @staticmethod
    def _is_in_bad_fork() -> bool:
        return False

    @staticmethod
    def manual_seed_all(seed: int) -> None:
        """There are no generators on the device."""


@cache
def backend() -> Any:
    """Build the device if there is no build of this source, and register it.

    A test that calls it is skipped where it cannot be built, or fails if the
    environment variable SKMC_SECOND_DEVICE is "required". It is also skipped on other
    devices, which count nothing.
    """
    if not DEVICE.startswith("second"):
        pytest.skip(f"{DEVICE} does not count its operations and its memory")
    version = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    root = (
        os.environ.get("TORCH_EXTENSIONS_DIR") or cpp_extension.get_default_build_root()
    )
    folder = Path(root, f"second_device-{torch.__version__}-{version}")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        built = cpp_extension.load(
            "second_device_backend",
            [str(SOURCE)],
            extra_cflags=["-O1"],
            build_directory=str(folder),
        )
    except Exception as error:  # no compiler, no ninja, other headers
        if os.environ.get("SKMC_SECOND_DEVICE") == "required":
            raise
        pytest.skip(f"the second device cannot be built: {error}")
    torch.utils.rename_privateuse1_backend("second")
    torch._register_device_module("second", Module)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    return built
