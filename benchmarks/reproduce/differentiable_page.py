"""Writes ``differentiable.md`` from the records."""

from __future__ import annotations

import math

from benchmarks.pages import table, write_page
from benchmarks.reproduce import differentiable as ours
from benchmarks.reproduce.results import Results

NAME = "differentiable"  # of the page and of its records

SHALLOW = "1 of 10"
DEEP = "4 layers of order 10"
SMALL = "4 of order 4"


def write(results: Results) -> None:
    body = [
        "# Differentiable inverse and SVD: results of the paper and ours",
        introduction(),
        summary(results),
        "## Table 1: time",
        *timed(results),
        "## Table 2: learning against the condition number",
        *conditioned(results),
        "## Table 3: D-SVD",
        *decomposed(results),
    ]
    write_page(NAME, body)


def introduction() -> str:
    return """\
`python -m benchmarks.reproduce NAME` makes this page and
[its records](differentiable.json). Called again, it continues from these records. NAME
is `ldminv-table1`, `ldminv-table2` or `dsvd-table3` (with depths, to run only these);
`differentiable` only writes the page. The paper is Xie, Kong, Wu, Liu, Lin: Fast and
differentiable matrix inverse and its extension to SVD. Its figures are in brackets.
Tables 2 and 3 were made with one thread of an AMD EPYC; Table 1 names its hardware.

Where the paper is ambiguous, this is our reading: `c0` is the smaller of `|A A'|_inf`
and `|A A'|_F`, and a Gaussian "N(0, 1/sqrt(d))" has the standard deviation `d^(-1/2)`
(with the variance `d^(-1/2)` the sum of singular values in Table 3, 47, would be 147,
above the paper's losses)."""


def summary(results: Results) -> str:
    rows = []
    for condition, paper in zip(ours.CONDITIONS, ours.PAPER_LEARNED, strict=True):
        mine = logged(results, DEEP, condition, "learned_single")
        if mine is not None:
            bar = paper - ours.SLACK
            verdict = "met" if mine >= bar else f"missed by {bar - mine:.2f}"
            what = f"LD-Minv, condition {condition}, -log10 loss, single precision"
            rows.append([what, f"{mine:.2f}", f"at least {bar:.2f}", verdict])
    for depth, paper in ours.PAPER_SVD.items():
        mine = results.mean(f"table3/{depth}", "mse_after")
        if mine is not None:
            verdict = "met" if mine <= paper[3] else f"missed by {mine - paper[3]:.4f}"
            what = f"D-SVD, depth {depth}, SVD MSE"
            rows.append([what, f"{mine:.4f}", f"at most {paper[3]}", verdict])
    return table(["what", "ours", "bar", ""], rows)


# ---------------------------------------------------------------------- Table 1


def timed(results: Results) -> list[str]:
    places = sorted({k.split("/")[1] for k in results.records if k[:6] == "table1"})
    parts = [
        """\
Seconds: medians of five rounds in which all methods take turns, in single precision, on
Gaussian matrices of standard deviation `n^(-1/2)`. "times" is the time of
`torch.linalg.pinv` divided by that of D-Minv. LD-Minv is trained on as many other
matrices and has the same products. Error is `|AXA - A|_F / |A|_F` over all matrices.
"Cholesky" is `A' (A A')^-1`, which needs full rank. In brackets: the paper's figures,
on a GPU of 2020 with batches of 100."""
    ]
    for place in places:
        parts += [f"### {place}", *timed_at(results, place)]
    return parts if places else []


def timed_at(results: Results, place: str) -> list[str]:
    records = {
        (m, n): results.records.get(f"table1/{place}/{m}x{n}/0") for m, n in ours.SIZES
    }
    header = ["", *(f"{m} x {n}" for (m, n), r in records.items() if r)]
    found = [(i, r) for i, r in enumerate(records.values()) if r]
    rows = [["matrices", *(str(r["batch"]) for _, r in found)]]
    rows.append(
        [
            "pinv",
            *(
                f"{r['seconds pinv']:.2g} ({ours.PAPER_TIMES['exact'][i]:g})"
                for i, r in found
            ),
        ]
    )
    for L, K in ours.NETWORKS:
        name = f"L {L} K {K}"
        paper = ours.PAPER_TIMES[L, K]
        cells = [f"{r[f'seconds {name}']:.2g} ({paper[i]:g})" for i, r in found]
        rows.append([f"L = {L}, K = {K}", *cells])
    rows.append(["Cholesky", *(f"{r['seconds cholesky']:.2g}" for _, r in found)])
    for L, K in ours.NETWORKS:
        exact = ours.PAPER_TIMES["exact"]
        paper = ours.PAPER_TIMES[L, K]
        cells = [
            f"{r['seconds pinv'] / r[f'seconds L {L} K {K}']:.1f} "
            f"({exact[i] / paper[i]:.0f})"
            for i, r in found
        ]
        rows.append([f"times, L = {L}, K = {K}", *cells])
    for name, label in (
        ("pinv", "pinv"),
        ("cholesky", "Cholesky"),
        ("learned", "LD-Minv, L = 4, K = 4"),
        *((f"L {L} K {K}", f"L = {L}, K = {K}") for L, K in ours.NETWORKS),
    ):
        cells = [f"{r[f'error {name}']:.0e}" for _, r in found]
        rows.append([f"error, {label}", *cells])
    square = [["inv", *(f"{r['seconds square inv']:.2g}" for _, r in found)]]
    for name in ("L 4 K 4", "L 4 K 12"):
        cells = [
            f"{r['seconds square inv'] / r[f'seconds square {name}']:.2f} "
            f"(error {r[f'error square {name}']:.0e})"
            for _, r in found
        ]
        square.append([f"times, {name}", *cells])
    return [
        table(header, rows),
        "The same for square matrices (the first columns) and `torch.linalg.inv`:",
        table(header, square),
        verdict(found),
    ]


def verdict(found: list) -> str:
    """The conclusion, computed from the records."""

    def factors(name: str, than: str) -> str:
        values = [r[f"seconds {than}"] / r[f"seconds {name}"] for _, r in found]
        return f"{min(values):.2g} to {max(values):.2g}"

    return f"""\
So `d_minv` of order 4 and depth 4 is {factors("L 4 K 4", "pinv")} times as fast as the
pseudo-inverse by SVD, and {factors("L 4 K 8", "pinv")} times with depth 8. But it is
{factors("L 4 K 4", "cholesky")} times as fast as Cholesky, and on square matrices
{factors("square L 4 K 4", "square inv")} times as fast as `torch.linalg.inv`. At depth
4, learning makes it exact. It pays off where it is faster than an SVD and the rank may
be deficient, and where only products are allowed. For full rank, a factorization is
faster and needs no training. `NCARLCompleter` solves positive definite systems by
Cholesky and would be slower with it, so it has no such option."""


# ---------------------------------------------------------------------- Table 2


def logged(results: Results, shape: str, condition, name: str) -> float | None:
    mean = results.mean(f"table2/{shape}/{condition}", name)
    return None if mean is None else -math.log10(max(mean, 1e-40))


def conditioned(results: Results) -> list[str]:
    if not results.values(f"table2/{DEEP}/1", "fixed"):
        return []

    def row(label: str, shape: str, name: str, shift: float = 0.0) -> list[str]:
        values = [logged(results, shape, c, name) for c in ours.CONDITIONS]
        return [label, *("-" if v is None else f"{v + shift:.2f}" for v in values)]

    header = ["condition", *(str(c) for c in ours.CONDITIONS)]
    paper = [
        ["D-Minv, the paper's", *(f"{x:.2f}" for x in ours.PAPER_FIXED)],
        ["LD-Minv, the paper's", *(f"{x:.2f}" for x in ours.PAPER_LEARNED)],
    ]
    deep = [
        row("D-Minv, single precision", DEEP, "fixed_single"),
        row("LD-Minv, single precision", DEEP, "learned_single"),
        row("D-Minv", DEEP, "fixed"),
        row("LD-Minv", DEEP, "learned"),
        row("LD-Minv, the paper's training", DEEP, "sgd"),
        row("LD-Minv, the same with lr=1e-2", DEEP, "sgd_1e-2"),
    ]
    small = [
        row("D-Minv", SMALL, "fixed"),
        row("LD-Minv", SMALL, "learned"),
        row("LD-Minv, the paper's training", SMALL, "sgd"),
    ]
    shift = math.log10(200)
    shallow = [
        row(f"D-Minv, c0 = {ours.LOOSE} s_1^2", SHALLOW, "fixed_loose", shift),
        row("LD-Minv", SHALLOW, "learned", shift),
    ]
    return [
        f"""\
`-log10` of `|A X A - A|_F^2`, averaged over 100 unseen matrices of 100 x 100 and
{len(ours.SEEDS)} seeds; larger is better. Singular values are uniform in
`[1 / condition, 1]`, singular vectors are uniform; 100 matrices are used for training.
`LDMinv.fit` has its defaults (the Gauss-Newton method, well under a second). "The
paper's training" is `solver="sgd"`: 1200 steps, lr 1e-4, halved every 300. K = 4 layers
of order L = 10, in double precision unless noted:""",
        table(header, paper + deep),
        """\
LD-Minv is better than D-Minv from condition 2 on, and equally accurate for conditions
100 and 2, in both precisions. Where both reach rounding errors (29 in double, 11.6 in
single precision), nothing is left to learn. The paper's training hardly changes the
parameters, because the gradient of already tiny errors is tiny. The same with K = 4 and
L = 4:""",
        table(header, small),
        f"""\
**The paper's own rows cannot be those of K = 4 and L = 10.** By Lemma 1 the error is
`e_0^(L^K)` with `L^K = 10^4`. At condition 2, where `s >= s_1 / 2`, a loss of 10^-2.83
requires a `c0` of about 700 `s_1^2`; then the loss at condition 1000 would be 50 times
the reported one. No `c0` gives the row. One layer (K = 1, L = 10) with
`c0 = {ours.LOOSE} s_1^2` does, if the loss is halved and averaged over the dimension.
Fitted to the row of D-Minv, this also nearly gives the row of LD-Minv:""",
        table(header, paper + shallow),
    ]


# ---------------------------------------------------------------------- Table 3


def decomposed(results: Results) -> list[str]:
    depths = [d for d in ours.PAPER_SVD if f"table3/{d}/0" in results.records]
    if not depths:
        return []
    header = ["depth", *(str(d) for d in depths)]

    def row(label: str, name: str, form: str, column: int | None = None) -> list[str]:
        cells = []
        for depth in depths:
            cell = format(results.records[f"table3/{depth}/0"][name], form)
            if column is not None:
                cell += f" ({ours.PAPER_SVD[depth][column]:g})"
            cells.append(cell)
        return [label, *cells]

    small = results.records.get("table3/small steps/0", {})
    records = [results.records[f"table3/{d}/0"] for d in depths]
    left = [r["mse_after"] / r["mse_before"] for r in records]
    return [
        f"""\
`DSVD` of 50 x 100 Gaussian matrices, {ours.MATRICES} for training and 100 unseen ones
for testing, single precision, random starts. Training is Algorithm 3: batches of 30,
gradient descent with lr 1e-2. The paper has 200 iterations; deep networks have fewer
here, as listed below, to save time. L = 4 and K = {ours.INVERSE_DEPTH} for LD-Minv. K =
6, as in the paper, gives the same (third row): because `I + t/2 P` has a condition
below 1.5, D-Minv is exact up to rounding, and nothing is left to learn for
`LDMinv.fit`, which `DSVD.fit` calls where the error exceeds 1e-4. "SVD MSE" is the mean
over the 50 values. "Loss" is `f` plus the sum of singular values, and "gap" is the same
without the off-diagonal cells. The paper's figures are in brackets.""",
        table(
            header,
            [
                row("SVD MSE, untrained", "mse_before", ".4f", 1),
                row("SVD MSE, trained", "mse_after", ".4f", 3),
                row("SVD MSE, untrained, K = 6", "mse_before_6", ".4f"),
                row("loss, untrained", "loss_before", ".3f", 0),
                row("loss, trained", "loss_after", ".3f", 2),
                row("gap, untrained", "gap_before", ".3f", 0),
                row("gap, trained", "gap_after", ".3f", 2),
                row("iterations", "iterations", "d"),
                row("LD-Minv trained", "trained_inverses", "d"),
                row("processor seconds", "seconds", ".0f"),
            ],
        ),
        f"""\
Our untrained MSE is already below the paper's trained one; training reduces it to
{min(left):.2f} to {max(left):.2f} of its value.""",
        f"""\
With steps of a thirtieth of `2 / |P|_2` (the batch has 30), on the other hand, the gaps
after 5 and 10 layers are {small["gap_5"]:.1f} and {small["gap_10"]:.1f}, and the SVD
MSE is {small["mse_5"]:.3f} and {small["mse_10"]:.3f}. The paper has losses of 35.9 and
26.7 and an MSE of .572 and .337. It seems to have taken the norm over the batch, and to
report the gap instead of the loss."""
        if small
        else "",
    ]
