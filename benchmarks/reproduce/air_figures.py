"""The figures of the AIR paper, drawn from our fits."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch

from benchmarks.shared.pages import save_figure
from benchmarks.shared.problems import hide, matrix
from benchmarks.shared.timing import prepared, solver_of
from skmc import AIRCompleter, DMFCompleter
from skmc.loop import solve
from skmc.metrics import nmae


def figures() -> None:
    """Draw and write all figures."""
    save_figure(laplacians(), "air-laplacians")
    save_figure(singular_values(), "air-singular-values")
    save_figure(curves(), "air-against-dmf")
    save_figure(fixed_laplacians(), "air-fixed")


def follow(completer, truth, X, look):
    """Run a completer's solver; call ``look(progress, completion)`` at each check."""
    solver, data = solver_of(X, completer)
    scaling = prepared(X, completer).scaling

    def callback(progress):
        completion = scaling.undo(progress.state.X).numpy()
        look(progress, completion)

    solve(
        solver, data, max_iter=completer.max_iter, callbacks=[callback], check_every=10
    )


def laplacians():
    """Figures 3 and 4: similarities sharpen, and the true ones remain."""
    shots = (20, 50, 100, 400)
    figure, axes = plt.subplots(4, 4, figsize=(12, 12), layout="constrained")
    for block, (name, pattern) in enumerate(
        [("Baboon", "random 30 %"), ("Syn-Netflix", "random 70 %")]
    ):
        truth, _ = matrix(name)
        X = hide(truth, pattern, 0)
        seen = {}

        def look(progress, completion, seen=seen):
            if progress.n_iter in shots:
                seen[progress.n_iter] = progress.outputs

        follow(AIRCompleter(scaling="global", random_state=0), truth, X, look)
        for side, key in enumerate(("rows", "columns")):
            for axis, n_iter in zip(axes[2 * block + side], shots, strict=True):
                A = -seen[n_iter][key].numpy()
                np.fill_diagonal(A, 0)
                axis.imshow(A, cmap="Greys", vmax=np.quantile(A, 0.995) or 1)
                axis.set_title(
                    f"{name}, {key}\nstep {n_iter}, sum {A.sum():.2g}", fontsize=10
                )
                axis.set_axis_off()
    return figure


def singular_values():
    """Theorem 1: large singular values grow first, and AIR separates them further."""
    truth, _ = matrix("Baboon")
    X = hide(truth, "random 30 %", 0)
    figure, axes = plt.subplots(
        1, 2, figsize=(10, 4), sharey=True, layout="constrained"
    )
    for axis, (name, params) in zip(
        axes,
        {"DMF (weights 0)": {"lambda_row": 0, "lambda_col": 0}, "AIR": {}}.items(),
        strict=True,
    ):
        steps, values = [], []

        def look(progress, completion, steps=steps, values=values):
            steps.append(progress.n_iter)
            values.append(torch.linalg.svdvals(progress.state.X)[:12].numpy())

        follow(AIRCompleter(scaling="global", random_state=0, **params), truth, X, look)
        axis.semilogy(steps, values)
        axis.set_title(f"{name}: 12 largest singular values")
        axis.set_xlabel("step")
        axis.set_ylim(5, None)
    return figure


def curves():
    """Figure 8: NMAE over iterations; DMF's rises again, AIR's does not."""
    cases = [
        ("Cameraman", "random 30 %"),
        ("Cameraman", "texture"),
        ("Cameraman", "patch"),
        ("Syn-Netflix", "random 70 %"),
        ("IC", "random 20 %"),
        ("GPCR", "random 20 %"),
    ]
    figure, axes = plt.subplots(2, 3, figsize=(12, 7), layout="constrained")
    for axis, (name, pattern) in zip(axes.flat, cases, strict=True):
        truth, _ = matrix(name)
        X = hide(truth, pattern, 0)
        for label, completer in {
            "DMF": DMFCompleter(random_state=0),
            "AIR": AIRCompleter(scaling="global", random_state=0, max_iter=2000),
        }.items():
            steps, errors = [], []

            def look(progress, completion, X=X, t=truth, s=steps, e=errors):
                s.append(progress.n_iter)
                e.append(nmae(completion, t, X.mask))

            follow(completer, truth, X, look)
            axis.semilogy(steps, errors, label=label)
        axis.set_title(f"{name}, {pattern}")
        axis.legend()
    axes[0, 0].set_ylabel("NMAE on hidden cells")
    axes[1, 0].set_ylabel("NMAE on hidden cells")
    return figure


def fixed_laplacians():
    """Figure 5: Laplacians fixed after some steps, compared with adaptive ones."""
    truth, _ = matrix("Baboon")
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    for axis, pattern in zip(axes, ("patch", "random 30 %", "texture"), strict=True):
        X = hide(truth, pattern, 0)
        fixed = {}

        def look(progress, completion, fixed=fixed):
            if progress.n_iter in (50, 100, 200):
                outputs = progress.outputs
                fixed[progress.n_iter] = {
                    k: v.numpy().copy() for k, v in outputs.items() if k != "X"
                }

        follow(AIRCompleter(scaling="global", random_state=0), truth, X, look)
        for label, L in {"adaptive": None, **fixed}.items():
            steps, errors = [], []

            def watch(progress, completion, X=X, s=steps, e=errors):
                s.append(progress.n_iter)
                e.append(nmae(completion, truth, X.mask))

            name = label if L is None else f"fixed at step {label}"
            follow(
                AIRCompleter(scaling="global", random_state=0, fixed_laplacians=L),
                truth,
                X,
                watch,
            )
            axis.semilogy(steps, errors, label=f"{name}: {errors[-1]:.4f}")
        axis.set_title(f"Baboon, {pattern}: NMAE")
        axis.legend()
    return figure
