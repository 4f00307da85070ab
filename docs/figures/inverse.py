"""The singular values inverted at each depth, and the effect of learning."""

import matplotlib.pyplot as plt
import torch

from skmc.inverses import DSVD, LDMinv, d_minv

s = torch.logspace(-2.5, 0, 120, dtype=torch.float64)
A = torch.diag(s)
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.6))
for depth in (1, 2, 3, 4):
    axes[0].semilogx(
        s, (d_minv(A, 4, depth, c0=1.0) @ A).diag(), label=f"D-Minv, K = {depth}"
    )
generator = torch.Generator().manual_seed(0)
values = 0.1 + 0.9 * torch.rand(50, 20, dtype=torch.float64, generator=generator)
values[:, 0], values[:, 1] = 0.1, 1.0
learned = LDMinv(order=4, depth=3).fit(torch.diag_embed(values))
shown = s[s >= 0.1]
found = learned(torch.diag_embed(torch.stack([shown, torch.ones_like(shown)], 1)))
axes[0].semilogx(
    shown, shown * found[:, 0, 0].detach(), "k--", label="LD-Minv, K = 3, above .1"
)
axes[0].set(xlabel="singular value s", title="s times its inverse")
axes[0].legend()
M = torch.randn(20, 12, dtype=torch.float64, generator=generator)
exact = torch.linalg.svdvals(M)
depths = [1, 2, 5, 10, 20, 40]
errors = []
for depth in depths:
    with torch.no_grad():
        errors.append(float((DSVD(depth=depth)(M).s - exact).square().mean()))
axes[1].loglog(depths, errors, "o-", ms=4)
axes[1].set(xlabel="layers", title="D-SVD, untrained: error of singular values")
