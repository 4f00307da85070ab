"""
Are learned steps worth more than tuned ones?
=============================================

A camera shakes while the shutter is open, and it is known how: non-blind deconvolution.
Linearised ADMM restores the picture in many steps of chosen lengths. D-NbD (Xie, Kong,
Wu, Liu, Lin, section A.1.3) is a few of the same steps, unrolled, with lengths and
filters learned from examples. Each step inverts a matrix: D-Minv and LD-Minv do so by
matrix products alone, through which one can differentiate.
"""

import sys
import time
from itertools import product
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from skimage import color, data
from torch import nn

from skmc.linalg import LDMinv

N = 48  # pixels on the side of a patch

# %%
# Shaken pictures
# ---------------
# The camera moves up and down, so that each column of a patch is blurred alike and the
# blur is the product ``B Z`` with a small matrix. It stays for random times at 9 to 21
# places in a row; beyond its edges a patch goes on as in a mirror. The noise has a
# deviation of 1 %. Training and test patches are from different pictures.


def draw_patches(names, count, rng):
    patches = []
    for name in names:
        picture = getattr(data, name)()
        gray = color.rgb2gray(picture) if picture.ndim == 3 else picture / 255
        h, w = gray.shape[0] // 2, gray.shape[1] // 2
        gray = gray[: 2 * h, : 2 * w].reshape(h, 2, w, 2).mean((1, 3))
        for _ in range(count):
            i, j = rng.randint(h - N + 1), rng.randint(w - N + 1)
            patches.append(gray[i : i + N, j : j + N])
    return np.array(patches)[rng.permutation(len(patches))]


def draw_blur(rng):
    length = rng.randint(9, 22)
    B = np.zeros((N, N))
    rows = np.arange(N)
    for place, share in enumerate(rng.dirichlet(np.ones(length))):
        seen = np.pad(rows, N, "symmetric")[rows + N + place - length // 2]
        np.add.at(B, (rows, seen), share)
    return B


def draw_problem(names, blurs, count, seed):
    """``Z`` and ``Y`` of shape (blurs, count, N, N), ``B`` (blurs, 1, N, N)."""
    rng = np.random.RandomState(seed)
    Z = draw_patches(names, blurs * count // len(names), rng).reshape(-1, count, N, N)
    B = np.array([draw_blur(rng) for _ in Z])[:, None]
    Y = B @ Z + 0.01 * rng.standard_normal(Z.shape)
    return [torch.tensor(part, dtype=torch.float32) for part in (Z, B, Y)]


seen = ["camera", "coffee", "coins", "rocket", "brick", "gravel"]
Z, B, Y = draw_problem(seen, 36, 12, seed=0)
test_Z, test_B, test_Y = draw_problem(["astronaut", "chelsea", "moon"], 12, 12, seed=1)


def psnr(found, truth):
    """Of each patch; white is 1."""
    return -10 * (found - truth).square().mean((-2, -1)).log10()


# %%
# Linearised ADMM
# ---------------
# A picture is ``Z = W' X W`` with few large wavelet coefficients ``X``::
#
#     min  1/2 |Y - B Z|_F^2 + lam |X|_1   subject to   Z = W' X W.
#
# One step, with the multiplier ``M``, is ::
#
#     Z <- (alpha B'B + I)^-1 (Z - alpha (M + beta (Z - W'XW)) + alpha B'Y)
#     X <- shrink(X + gamma W (M + beta (Z - W'XW)) W', gamma lam)
#     M <- M + beta (Z - W'XW)
#
# This is eq. 12 of the paper but for what we take to be slips of the pen: there it is
# ``B B'``, the second line has ``W'`` and a minus sign (the slope by ``X`` is
# ``-W (...) W'``), and its threshold is ``gamma / lam``.


def haar(levels=3):
    """The orthonormal wavelet transform of columns."""
    W = np.eye(N)
    for level in range(levels):
        half = N >> (level + 1)
        pairs = W[: 2 * half].reshape(half, 2, N) / np.sqrt(2)
        W[:half], W[half : 2 * half] = pairs.sum(1), pairs[:, 0] - pairs[:, 1]
    return torch.tensor(W, dtype=torch.float32)


W, eye = haar(), torch.eye(N)


def unroll(Y, B, lam, beta, steps, inverses, filters=None):
    """One step for each ``alpha, gamma``, with two filters or none."""
    Z, X, M = Y, W @ Y @ W.mT, torch.zeros_like(Y)
    gram, back = B.mT @ B, Y
    for k, (alpha, gamma) in enumerate(steps):
        smooth_Z, smooth_X = filters[k] if filters else (nn.Identity(), nn.Identity())
        T = inverses[k](alpha * gram + eye)
        Z = T @ (Z + alpha * (B.mT @ Y - smooth_Z(M + beta * (Z - back))))
        V = X + gamma * (W @ smooth_X(M + beta * (Z - back)) @ W.mT)
        X = torch.relu(V - gamma * lam) - torch.relu(-V - gamma * lam)
        back = W.mT @ X @ W
        M = M + beta * (Z - back)
    return Z


# %%
# Fixed and adaptive steps
# ------------------------
# Both methods take a hundred steps with ``alpha = gamma = s / beta`` at first; adaptive
# ones shrink by 2 % each time. ``lam``, ``beta`` and ``s`` are the best of the same
# grid, by the PSNR on training patches.


def admm(Y, B, lam, beta, s, rate, count=100):
    lengths = [max(rate**k * s / beta, 1e-4) for k in range(count)]
    return unroll(
        Y, B, lam, beta, [(a, a) for a in lengths], [torch.linalg.inv] * count
    )


S = [0.5, 1.0, 1.5, 2.0]
grid = list(product([0.002, 0.004], [0.1, 0.3], S))
restored, curves, lam = {}, {}, None
for name, rate in {"fixed": 1.0, "adaptive": 0.98}.items():
    scores = [
        float(psnr(admm(Y[::6, :4], B[::6], *g, rate), Z[::6, :4]).mean()) for g in grid
    ]
    best_lam, best_beta, s = grid[int(np.nanargmax(scores))]
    lam = lam or best_lam
    print(f"L-ADMM, {name}: best lam={best_lam}, beta={best_beta}, s={s}")
    ways = {s: admm(test_Y, test_B, best_lam, best_beta, s, rate) for s in S}
    restored[f"L-ADMM, {name}"] = ways[s]
    # What has diverged may have grown beyond all numbers.
    curves[name] = [
        float(psnr(way, test_Z).nan_to_num().mean()) for way in ways.values()
    ]


# %%
# D-NbD
# -----
# Five steps with lengths, ``beta`` and two 5 x 5 filters per step learned. It starts as
# L-ADMM: filters that do nothing, ``alpha = gamma = 1 / beta``. The second filter is
# followed by ``W``, so that it may start so. D-Minv leaves the coefficients of its
# polynomials at one; LD-Minv learns them from the matrices that it meets, anew every 25
# iterations (Algorithm 4; in the paper at each).


class Filter(nn.Module):
    def __init__(self, size=5):
        super().__init__()
        kernel = torch.zeros(1, 1, size, size)
        kernel[..., size // 2, size // 2] = 1
        self.kernel = nn.Parameter(kernel)

    def forward(self, Z):
        flat = Z.flatten(0, 1)  # patches as channels of one picture: five times as fast
        kernels = self.kernel.expand(len(flat), -1, -1, -1)
        out = nn.functional.conv2d(flat, kernels, padding="same", groups=len(flat))
        return out.view_as(Z)


class DNbD(nn.Module):
    def __init__(self, layers=5, beta=0.1):
        super().__init__()
        self.log_steps = nn.Parameter(torch.full((layers, 2), -np.log(beta)))
        self.log_beta = nn.Parameter(torch.tensor(np.log(beta), dtype=torch.float32))
        self.inverses = nn.ModuleList(LDMinv(order=4, depth=3) for _ in range(layers))
        self.inverses.requires_grad_(False)  # they have a training of their own
        self.filters = nn.ModuleList(
            nn.ModuleList([Filter(), Filter()]) for _ in range(layers)
        )

    def forward(self, Y, B):
        steps, beta = self.log_steps.exp(), self.log_beta.exp()
        return unroll(Y, B, lam, beta, steps, self.inverses, self.filters)

    def fit_inverses(self, B):
        for alpha, inverse in zip(
            self.log_steps[:, 0].exp(), self.inverses, strict=True
        ):
            inverse.fit(alpha * B.mT @ B + eye)


# %%
# Training
# --------
# The paper's loss, eq. 15, is the problem's objective, which needs no truth. But its
# minimum is where L-ADMM arrives: with that loss the network learns to get there sooner
# and no better picture. What it can gain beyond that, it gains from examples: the loss
# is the mean of ``log |Z - truth|_F^2``, that is minus the PSNR.


def train(learned, iterations=150, lr=0.03):
    rng = np.random.RandomState(0)
    net = DNbD()
    free = [p for p in net.parameters() if p.requires_grad]
    adam = torch.optim.Adam(free, lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(adam, lr, iterations)
    for t in range(iterations):
        if learned and t % 25 == 0:
            net.fit_inverses(B[rng.permutation(len(B))[:8]])
        blurs = rng.permutation(len(B))[:4]
        loss = -psnr(net(Y[blurs, :8], B[blurs]), Z[blurs, :8]).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        schedule.step()
    if learned:
        net.fit_inverses(B[:8])
    return net


nets = {"D-NbD(D-Minv)": False, "D-NbD(LD-Minv)": True}
for name, learned in nets.items():
    start = time.perf_counter()
    nets[name] = train(learned).requires_grad_(False)
    print(f"{name} learned in {time.perf_counter() - start:.0f} s")
    restored[name] = nets[name](test_Y, test_B)

# %%
# On pictures never seen
# ----------------------
scores = {"shaken": psnr(test_Y, test_Z)}
scores |= {name: psnr(found, test_Z) for name, found in restored.items()}
print("\nPSNR in dB, mean over test patches; gain over the line above, 2 std. errors")
before = scores["shaken"]
for name, score in scores.items():
    gain = score - before
    error = 2 * gain.std() / gain.numel() ** 0.5
    print(f"{name:>16}: {score.mean():.2f}  {gain.mean():+.2f} +- {error:.2f}")
    before = score
print("\nL-ADMM by its first step, in units of 1 / beta", S)
for name, curve in curves.items():
    print(
        f"{name:>16}: "
        + "  ".join(f"{dB:.2f}" if dB > 0 else "diverged" for dB in curve)
    )

# %%
# The order is that of the paper's table 4, but the gap between fixed and adaptive steps
# is not: once both are tuned, they end at the same picture. What adaptive ones do is
# forgive: steps that are too long diverge unless they shrink (below, left; the last
# fixed ones are off the picture). Who cannot try out steps will see the paper's order.
#
# Three layers of D-Minv do not reach the small singular values of ``alpha B'B + I``
# where ``alpha`` is large (right, dotted): what the blur nearly wiped out is inverted
# too weakly. So this network has to live with a smaller ``alpha``. With learned
# coefficients the same number of products inverts all of them, and the other network
# keeps the ``alpha`` that suits the pictures (right: the last layer of each).


def inverted(A, inverse):
    """Singular values ``s`` of ``A``, and ``s`` times those of its inverse."""
    s, V = torch.linalg.eigh(A)
    with torch.no_grad():
        return s.numpy(), (s * (V * (inverse(A) @ V)).sum(0)).numpy()


figure = plt.figure(figsize=(13, 7), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.3])
chosen = test_Z.std((-2, -1)).argmax()  # the patch of most contrast
shown = {"truth": test_Z, "shaken": test_Y, **restored}
for axis, (name, patches) in zip(top.subplots(1, 6), shown.items(), strict=True):
    axis.imshow(patches.flatten(0, 1)[chosen].numpy(), cmap="gray", vmin=0, vmax=1)
    dB = f"\n{scores[name].flatten()[chosen]:.1f} dB" if name in scores else "\n"
    axis.set_title(name + dB)
    axis.set_axis_off()
left, right = bottom.subplots(1, 2)
for name, curve in curves.items():
    left.plot(S, curve, "o-", label=f"L-ADMM, {name}")
for color_, name in zip(("C2", "C3"), nets, strict=True):
    left.axhline(float(scores[name].mean()), color=color_, label=name)
    alpha = nets[name].log_steps[-1, 0].exp()
    A = alpha * test_B[0, 0].mT @ test_B[0, 0] + eye
    label = f"{name}, alpha={alpha:.1f}"
    right.plot(*inverted(A, nets[name].inverses[-1]), ".-", color=color_, label=label)
label = f"D-Minv, alpha={alpha:.1f}"
right.plot(*inverted(A, LDMinv(order=4, depth=3)), ":", color="C2", label=label)
left.set_xticks(S)
left.set(ylim=(30.4, None))
left.set(xlabel="first step, in units of 1 / beta", ylabel="PSNR of test patches (dB)")
left.legend(loc="lower left")
right.axhline(1, color="0.6", zorder=0)
right.set(xlabel="singular value s of alpha B'B + I", ylabel="s times its inverse")
right.legend(loc="lower right")
target = Path(sys.argv[0] or "deconvolution.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
