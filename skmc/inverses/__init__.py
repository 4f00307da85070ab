"""Differentiable inverses and singular values, and descent on orthonormal matrices."""

from skmc.inverses.dsvd import DSVD
from skmc.inverses.dsvd_steps import offdiag, random_orthonormal
from skmc.inverses.inverse import LDMinv, d_minv
from skmc.inverses.stiefel import StiefelResult, cayley_step, minimize_on_stiefel

__all__ = ["DSVD", "LDMinv", "d_minv", "minimize_on_stiefel"]
