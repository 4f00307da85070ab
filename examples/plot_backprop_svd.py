"""
What happens to gradients when singular values coincide?
========================================================

The plane of the first two singular vectors of a matrix depends smoothly on the matrix,
even where these two singular values are equal and each vector on its own is arbitrary.
`torch.linalg.svd` nevertheless differentiates the single vectors. Its derivative there
is NaN or, worse, a wrong number. `DSVD` consists of descent steps, none of which
divides by a difference of singular values.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch

from skmc.inverses import DSVD

# %%
# A function of the plane
# -----------------------
# :math:`P = U_2 U_2^T` projects onto the plane of the first two left singular vectors
# :math:`U_2`. The loss is :math:`\tfrac{1}{2} \|P - \text{target}\|_F^2`, computed with
# either decomposition.
random = torch.Generator().manual_seed(0)
draws = torch.randn(2, 6, 5, generator=random, dtype=torch.float64)
target, _, Vt = torch.linalg.svd(draws[0], full_matrices=False)
target = target[:, :2] @ target[:, :2].mT
dsvd = DSVD(depth=50)


def exact(M):
    return torch.linalg.svd(M, full_matrices=False)[0]


def by_descent(M):
    return dsvd(M).U


def loss(M, left_vectors):
    plane = left_vectors(M)[:, :2]
    return (plane @ plane.mT - target).square().sum() / 2


def gradient(M, left_vectors):
    M = M.clone().requires_grad_()
    return torch.autograd.grad(loss(M, left_vectors), M)[0]


# %%
# Two values approach each other
# ------------------------------
# The singular values are ``1 + gap, 1, .5, .3, .2``. The loss can be evaluated with
# either decomposition, and central differences give its derivative to nine digits. The
# error of torch grows like the rounding error divided by the gap. In the last line only
# rounding separates the two values: possibly no digit is correct, and there is no
# warning.


def by_differences(M, h=1e-5):
    cells = torch.eye(M.numel(), dtype=M.dtype).view(-1, *M.shape)
    slopes = [
        (loss(M + h * E, exact) - loss(M - h * E, exact)) / (2 * h) for E in cells
    ]
    return torch.stack(slopes).view_as(M)


U, _, Vt = torch.linalg.svd(draws[1], full_matrices=False)
gaps = [1e-1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14, 0.0]
methods = {"torch.linalg.svd": exact, "DSVD": by_descent}
errors = {name: [] for name in methods}
print("    gap  error of the derivative: " + ", ".join(methods))
for gap in gaps:
    s = torch.tensor([1 + gap, 1, 0.5, 0.3, 0.2], dtype=torch.float64)
    M = (U * s) @ Vt
    slope = by_differences(M)
    for name, left_vectors in methods.items():
        error = (gradient(M, left_vectors) - slope).norm() / slope.norm()
        errors[name].append(float(error))
    print(f"{gap:7.0e}" + "".join(f"  {error[-1]:16.1e}" for error in errors.values()))

# %%
# Descent from a symmetric start
# ------------------------------
# Equal singular values occur whenever an iteration starts from the identity, which is
# common. Here it starts from ``diag(1, 1, .5, .5, .5)``. With the derivative of
# `torch.linalg.svd` the first step leads to NaN and descent stops. With that of `DSVD`
# the plane rotates to its target.
starting = torch.zeros(6, 5, dtype=torch.float64)
starting.fill_diagonal_(0.5)
starting[0, 0] = starting[1, 1] = 1
paths, values = {}, []
for name, left_vectors in methods.items():
    M, path = starting, []
    for _ in range(15):
        path.append(float(loss(M, exact)))
        if left_vectors is by_descent:
            values.append(torch.linalg.svdvals(M))
        M = M - 0.15 * gradient(M, left_vectors)
        if not M.isfinite().all():
            break
    paths[name] = path
    print(f"{name}: loss {path[0]:.3f} -> {path[-1]:.1e}, {len(path)} steps")

# %%
# The picture
# -----------
# If you need a function of the singular values,
# :math:`U \operatorname{diag}(\gamma(s)) V^T`, rather than the vectors themselves, no
# iteration is needed: `SpectralSensingRegressor` differentiates it in closed form
# (`skmc.linalg.apply_to_singular_values`), which is finite at equal values too.
figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(13, 4), layout="constrained"
)
for (name, error), marker in zip(errors.items(), "so", strict=True):
    left.loglog(gaps[:-1], error[:-1], f"{marker}-", label=name)
left.invert_xaxis()
left.set(xlabel="gap between the first two values", ylabel="error of the derivative")
left.set_title("the error grows as the gap shrinks")
left.legend()
for (name, path), marker in zip(paths.items(), "so", strict=True):
    stops = " (then NaN)" if len(path) == 1 else ""
    middle.semilogy(path, f"{marker}-", ms=9 if stops else 3, label=name + stops)
middle.set(xlabel="step", ylabel="loss", title="descent from equal singular values")
middle.legend()
right.plot(torch.stack(values).numpy())
right.set(xlabel="step", ylabel="singular values", title="along the descent with DSVD")
target = Path(sys.argv[0] or "backprop.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
