"""Writes ``differentiable.md`` from the records."""

from __future__ import annotations

import math

from benchmarks.reproduce import differentiable as ours
from benchmarks.shared.pages import dots, folded, table, write_page
from benchmarks.shared.results import Results

NAME = "differentiable"  # of the page and of its records

SHALLOW = "1 of 10"
DEEP = "4 layers of order 10"
SMALL = "4 of order 4"


def write(results: Results) -> None:
    reached = summary(results)
    fields = {
        "n_bars": len(reached),
        "n_met": sum(row[-1] == "met" for row in reached),
        "summary": table(["what", "ours", "bar", ""], reached),
        **timed(results),
        **conditioned(results),
        **decomposed(results),
    }
    write_page(NAME, fields)


def summary(results: Results) -> list[list[str]]:
    rows: list[list[str]] = []
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
    return rows


# ---------------------------------------------------------------------- Table 1


def timed(results: Results) -> dict[str, str]:
    (place,) = {k.split("/")[1] for k in results.records if k.startswith("table1/")}
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

    def factors(name: str, than: str) -> str:
        values = [r[f"seconds {than}"] / r[f"seconds {name}"] for _, r in found]
        return f"{min(values):.2g} to {max(values):.2g}"

    points = {
        f"{m} x {n}": {
            way: r[f"seconds {key}"] / r["seconds L 4 K 4"]
            for way, key in (("pinv by SVD", "pinv"), ("Cholesky", "cholesky"))
        }
        for (m, n), r in records.items()
        if r
    }
    return {
        "chart": dots(
            NAME, "Time / time of D-Minv, L = 4, K = 4", points, log=True, at=1
        ),
        "place": place,
        "times": folded(f"All times and errors on {place}", table(header, rows)),
        "square_times": table(header, square),
        "than_pinv": factors("L 4 K 4", "pinv"),
        "deep_than_pinv": factors("L 4 K 8", "pinv"),
        "than_cholesky": factors("L 4 K 4", "cholesky"),
        "than_inv": factors("square L 4 K 4", "square inv"),
    }


# ---------------------------------------------------------------------- Table 2


def logged(results: Results, shape: str, condition, name: str) -> float | None:
    mean = results.mean(f"table2/{shape}/{condition}", name)
    return None if mean is None else -math.log10(max(mean, 1e-40))


def conditioned(results: Results) -> dict[str, object]:
    def row(label: str, shape: str, name: str, shift: float = 0.0) -> list[str]:
        values = [logged(results, shape, c, name) for c in ours.CONDITIONS]
        return [label, *("-" if v is None else f"{v + shift:.2f}" for v in values)]

    conditions = ["condition", *(str(c) for c in ours.CONDITIONS)]

    def turned(columns: list[list[str]]) -> str:
        """A table with one line for each condition."""
        header, *rows = zip(conditions, *columns, strict=True)
        return table(header, rows)

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
    return {
        "n_seeds": len(ours.SEEDS),
        "loose": ours.LOOSE,
        "deep": turned([paper[1], *deep]),
        "small": turned(small),
        "shallow": turned(paper + shallow),
    }


# ---------------------------------------------------------------------- Table 3


def decomposed(results: Results) -> dict[str, object]:
    depths = [d for d in ours.PAPER_SVD if f"table3/{d}/0" in results.records]
    header = ["depth", *(str(d) for d in depths)]

    def row(label: str, name: str, form: str, column: int | None = None) -> list[str]:
        cells = []
        for depth in depths:
            cell = format(results.records[f"table3/{depth}/0"][name], form)
            if column is not None:
                cell += f" ({ours.PAPER_SVD[depth][column]:g})"
            cells.append(cell)
        return [label, *cells]

    small = results.records["table3/small steps/0"]
    records = [results.records[f"table3/{d}/0"] for d in depths]
    left = [r["mse_after"] / r["mse_before"] for r in records]
    rows = [
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
    ]
    return {
        "matrices": ours.MATRICES,
        "inverse_depth": ours.INVERSE_DEPTH,
        "svd": table(header, rows),
        "least_left": f"{min(left):.2f}",
        "most_left": f"{max(left):.2f}",
        "gap_5": f"{small['gap_5']:.1f}",
        "gap_10": f"{small['gap_10']:.1f}",
        "mse_5": f"{small['mse_5']:.3f}",
        "mse_10": f"{small['mse_10']:.3f}",
    }
