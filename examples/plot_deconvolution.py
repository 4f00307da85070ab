"""
Do learned steps restore pictures better than tuned ones?
=========================================================

A camera shakes while the shutter is open, and its motion is known. Restoring the
picture is then called non-blind deconvolution. Linearized ADMM takes many steps whose
lengths are tuned. D-NbD (Xie, Kong, Wu, Liu, Lin, section A.1.3) unrolls a few of the
same steps and learns lengths and filters from examples. Each step inverts a matrix.
D-Minv and LD-Minv compute the inverse with matrix products only, so it can be
differentiated.
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

from skmc.inverses import LDMinv

N = 48  # pixels on the side of a patch

# %%
# Blurred pictures
# ----------------
# The camera moves up and down, so the same blur applies to each column of a patch, and
# the blurred patch is the product :math:`B Z` with a small matrix :math:`B`. The camera
# stays for random times at 9 to 21 consecutive positions. Patches are mirrored at their
# edges. The noise has a standard deviation of 1 %. Training and test patches come from
# different pictures.


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
    """The PSNR of each patch; white is 1."""
    return -10 * (found - truth).square().mean((-2, -1)).log10()


# %%
# Linearized ADMM
# ---------------
# A picture is :math:`Z = W^T X W` with few large wavelet coefficients :math:`X`:
#
# .. math::
#
#     \min_{Z, X}\; \tfrac{1}{2} \|Y - B Z\|_F^2 + \lambda \|X\|_1
#     \quad \text{subject to} \quad Z = W^T X W
#
# One step with the multiplier :math:`M` is
#
# .. math::
#
#     Z &\leftarrow (\alpha B^T B + I)^{-1}
#     (Z - \alpha (M + \beta (Z - W^T X W)) + \alpha B^T Y) \\
#     X &\leftarrow \operatorname{shrink}_{\gamma \lambda}
#     (X + \gamma W (M + \beta (Z - W^T X W)) W^T) \\
#     M &\leftarrow M + \beta (Z - W^T X W)
#
# This is eq. 12 of the paper, except for what we believe to be typographical errors.
# The paper has :math:`B B^T`; its second line has :math:`W^T` and a minus sign (the
# gradient with respect to :math:`X` is :math:`-W (\ldots) W^T`); and its threshold is
# :math:`\gamma / \lambda`.


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
    """Take one step for each ``alpha, gamma``, with two filters or none."""
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
# Both methods take a hundred steps. The first has ``alpha = gamma = s / beta``;
# adaptive steps shrink by 2 % each time. ``lam``, ``beta`` and ``s`` are the best
# values of the same grid, measured by the PSNR on training patches.


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
    # Diverged runs may contain infinities.
    curves[name] = [
        float(psnr(way, test_Z).nan_to_num().mean()) for way in ways.values()
    ]


# %%
# D-NbD
# -----
# D-NbD has five steps with learned lengths, a learned ``beta`` and two learned 5 x 5
# filters per step. It is initialized as L-ADMM: the filters do nothing, and
# ``alpha = gamma = 1 / beta``. The second filter is followed by ``W`` to make this
# initialization possible. D-Minv leaves the coefficients of its polynomials at one.
# LD-Minv learns them from the matrices that occur in training, again every 25
# iterations (Algorithm 4; in the paper at every iteration).


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
        self.inverses.requires_grad_(False)  # they are trained separately
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
# The loss of the paper, eq. 15, is the objective of the problem, which does not require
# the truth. However, L-ADMM converges to the minimum of this objective. With that loss
# the network learns to reach it faster, but not to produce a better picture. To improve
# the picture, it has to learn from examples: here the loss is the mean of
# :math:`\log \|Z - \text{truth}\|_F^2`, which is the negative PSNR up to a factor and a
# constant.


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
    print(f"{name} trained in {time.perf_counter() - start:.0f} s")
    restored[name] = nets[name](test_Y, test_B)

# %%
# Results on unseen pictures
# --------------------------
scores = {"blurred": psnr(test_Y, test_Z)}
scores |= {name: psnr(found, test_Z) for name, found in restored.items()}
print("\nPSNR in dB, mean over test patches; gain over the line above +- 2 std. errors")
before = scores["blurred"]
for name, score in scores.items():
    gain = score - before
    error = 2 * gain.std() / gain.numel() ** 0.5
    print(f"{name:>16}: {score.mean():.2f}  {gain.mean():+.2f} +- {error:.2f}")
    before = score
print("\nL-ADMM by length of the first step, in units of 1 / beta", S)
for name, curve in curves.items():
    print(
        f"{name:>16}: "
        + "  ".join(f"{dB:.2f}" if dB > 0 else "diverged" for dB in curve)
    )

# %%
# The order of the methods is that of the paper's table 4, but the gap between fixed and
# adaptive steps is not: once both are tuned, they give the same picture. Adaptive steps
# are more robust. Steps that are too long diverge unless they shrink (below, left; the
# longest fixed steps are outside the plot). If the steps cannot be tuned, the order of
# the paper appears.
#
# Three layers of D-Minv do not reach the small singular values of
# :math:`\alpha B^T B + I` if :math:`\alpha` is large (right, dotted): the components
# that the blur nearly removed are inverted too weakly. The network with D-Minv
# therefore needs a smaller :math:`\alpha`. With learned coefficients, the same number
# of products inverts all singular values, and the network with LD-Minv keeps the
# :math:`\alpha` that suits the pictures (right: the last layer of each network).


def inverted(A, inverse):
    """The singular values ``s`` of ``A``, and ``s`` times those of its inverse."""
    s, V = torch.linalg.eigh(A)
    with torch.no_grad():
        return s.numpy(), (s * (V * (inverse(A) @ V)).sum(0)).numpy()


figure = plt.figure(figsize=(13, 7), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.3])
chosen = test_Z.std((-2, -1)).argmax()  # the patch with the highest contrast
shown = {"truth": test_Z, "blurred": test_Y, **restored}
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
left.set(xlabel="first step, in units of 1 / beta", ylabel="PSNR on test patches (dB)")
left.legend(loc="lower left")
right.axhline(1, color="0.6", zorder=0)
right.set(xlabel="singular value s of alpha B'B + I", ylabel="s times its inverse")
right.legend(loc="lower right")
target = Path(sys.argv[0] or "deconvolution.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
