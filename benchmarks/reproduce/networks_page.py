"""Writes ``networks.md`` from the records."""

from __future__ import annotations

import numpy as np

from benchmarks.reproduce import networks as ours
from benchmarks.reproduce.page_parts import (
    compared,
    figure,
    first,
    percents,
    unconverged,
)
from benchmarks.reproduce.papers import AIR_TABLE1, NSR_TABLE1, NSR_TABLE4
from benchmarks.shared.pages import best, dots, folded, save_figure, table, write_page
from benchmarks.shared.results import Results

NAME = "networks"  # of the page and of its records

# The order of the columns of DNN-NSR's tables, by our names.
COLUMNS = ("IALM", "NCARL", "AEMC", "DLMC", "BiBNN", "NSR")

# Tables I, II and V of DNN-NSR: PSNR (and SSIM).
NSR_PSNR = {
    10: (26.1469, 30.3217, 30.5333, 32.5475, 35.2654, 37.3565),
    30: (20.5052, 24.4008, 24.0187, 27.4959, 32.9584, 35.1072),
    50: (17.8976, 21.5373, 18.1350, 25.7063, 27.1325, 29.8678),
    80: (12.3161, 17.7434, 17.6322, 20.6940, 21.2342, 25.0967),
}
NSR_PICTURE = {
    "psnr": {
        30: (16.7313, 27.6908, 28.4982, 29.6249, 30.4575, 30.8723),
        40: (16.7342, 26.6660, 27.9642, 29.3363, 29.7862, 30.2301),
        50: (16.7315, 25.9480, 27.4329, 28.7921, 28.9233, 30.0301),
    },
    "ssim": {
        30: (0.3434, 0.7838, 0.8269, 0.8629, 0.8736, 0.8774),
        40: (0.3310, 0.7606, 0.7946, 0.8488, 0.8597, 0.8656),
        50: (0.3169, 0.7466, 0.7221, 0.8009, 0.8342, 0.8521),
    },
}
NSR_GRADUAL = {
    "50 %": (29.8678, 27.5959, 25.3325, 20.5376, 19.4572, 17.4001, 16.9405),
    "80 %": (None, 25.0967, 22.1119, 18.9528, 16.1477, 15.5734, 14.1351),
    "picture": (30.0301, 27.0758, 25.8666, 24.1605, 21.1786, 20.1080, 20.6373),
}
PNMC_PAPER = {  # in Table 1 of AIR
    "Barbara, random 30 %": 0.0622,
    "Barbara, patch": 0.2055,
    "Barbara, texture": 0.11,
    "Baboon, random 30 %": 0.0965,
    "Baboon, patch": 0.1722,
    "Baboon, texture": 0.1488,
}

NETWORK_CASES = ("dense network", "wide network")

BARS = {"NSR": (1, 1.5, 3, 19), "linked": (0.1, 0.1, 0.1, 1)}
PNMC_BARS = (0.045, 0.2055, 0.11)  # Barbara


def write(results: Results) -> None:
    lost = on_synthetic(results)
    own = lost["NSR"].values()
    fields = {
        "chart": dots(NAME, "Percent of the hidden energy lost", lost, log=True),
        "nsr": f"{min(own):.2g} to {max(own):.3g} %",
        "nsr_paper": f"{NSR_TABLE1[10][-1]:.2g} to {NSR_TABLE1[80][-1]:.3g} %",
        "epochs": ours.EPOCHS,
        "depth": ours.DEPTH,
        "limit": ours.LIMIT,
        "bars": bars(results),
        **synthetic(results),
        **peaks(),
        **others(results),
        **picture(results),
        **rated(results),
        **gradual(results),
        **extrapolation(results),
        **patches(results),
        "unconverged": unconverged(results),
    }
    write_page(NAME, fields)


def paper(columns: dict, case, method: str):
    """The figure in DNN-NSR's table for one of our methods."""
    return columns[case][COLUMNS.index(method)] if method in COLUMNS else None


def by_case(columns: dict) -> dict[str, dict]:
    """The same figures, keyed as `compared` needs them."""
    return {
        f"{p} %": dict(zip(COLUMNS, figures, strict=True))
        for p, figures in columns.items()
    }


def bars(results: Results) -> str:
    rows = []

    def row(what: str, mine: float | None, bar: float, form: str) -> None:
        if mine is not None:
            verdict = (
                "met" if mine <= bar else f"missed by {100 * (mine / bar - 1):.1f} %"
            )
            rows.append([what, format(mine, form), f"{bar:g}", verdict])

    for method, at_most in BARS.items():
        for percent, bar in zip(ours.HIDDEN, at_most, strict=True):
            mine = results.mean(f"table1/{percent} %/{method}", "percent")
            what = f"{method}, synthetic, {percent} % hidden, percent"
            row(what, mine, bar, ".3f")
            if method == "NSR":
                row(f"{what} (paper)", mine, NSR_TABLE1[percent][-1], ".3f")
    for pattern, bar in zip(ours.PATTERNS, PNMC_BARS, strict=True):
        mine = first(results, f"pnmc/Barbara, {pattern}/PNMC", "nmae")
        row(f"PNMC, Barbara, {pattern}, NMAE", mine, bar, ".4f")
    return table(["what", "ours", "at most", ""], rows)


def counted(results: Results, part: str) -> str:
    """Number of seeds of each case and method of a part."""
    counts: dict[int, dict[str, list[str]]] = {}
    for stem in sorted({k.rsplit("/", 1)[0] for k in results.records}):
        of, case, method = stem.split("/", 2)
        if of == part:
            n = len(results.values(stem, "seconds"))
            counts.setdefault(n, {}).setdefault(case, []).append(method)
    if len(counts) == 1:
        return f"Seeds: {next(iter(counts))} everywhere."
    listed = [
        f"{n} (" + "; ".join(f"{c}: {', '.join(m)}" for c, m in cases.items()) + ")"
        for n, cases in sorted(counts.items(), reverse=True)
        if n
    ]
    return f"Seeds: {', '.join(listed) or 'none yet'}. Cells with - were not run."


def seconds(results: Results, part: str, methods) -> str:
    taken = []
    for method in methods:
        times = [
            record["seconds"]
            for key, record in results.records.items()
            if key.startswith(f"{part}/")
            and key.rsplit("/", 2)[1] == method
            and "seconds" in record
        ]
        if times:
            taken.append(f"{method} {np.median(times):.1f}")
    return "Median seconds of a fit: " + ", ".join(taken) + "."


def on_synthetic(results: Results) -> dict[str, dict[str, float]]:
    """Energy lost on the synthetic matrix, by method and percent hidden."""
    papers = {f"{percent} % hidden": row[-1] for percent, row in NSR_TABLE1.items()}
    found = {
        method: {
            f"{percent} % hidden": mean
            for percent in ours.HIDDEN
            if (mean := results.mean(f"table1/{percent} %/{method}", "percent"))
        }
        for method in ours.ON_SYNTHETIC
    }
    return {**found, "DNN-NSR in the paper": papers}


def synthetic(results: Results) -> dict[str, str]:
    cases = [f"{percent} %" for percent in ours.HIDDEN]
    methods = list(ours.ON_SYNTHETIC)
    mine = compared(
        results, "table1", cases, methods, "percent", ".3g", by_case(NSR_TABLE1)
    )
    rows = []
    for method in methods:
        cells = []
        for percent in ours.HIDDEN:
            values = results.values(f"table1/{percent} %/{method}", "psnr")
            theirs = paper(NSR_PSNR, percent, method)
            cell = f"{np.mean(values):.1f} ± {np.std(values):.1f}" if values else "-"
            cells.append(cell if theirs is None else f"{cell} ({theirs:.1f})")
        rows.append([method, *cells])
    return {
        "synthetic": mine,
        "synthetic_seeds": counted(results, "table1"),
        "synthetic_psnr": table(["PSNR, dB", *cases], rows),
        "synthetic_seconds": seconds(results, "table1", methods),
    }


def peaks() -> dict[str, str]:
    """The peaks that the paper's two measures imply."""
    rows = []
    for percent, psnrs in NSR_PSNR.items():
        lost = np.array(NSR_TABLE1[percent]) / 100
        implied = psnrs + 10 * np.log10(percent / 100 * lost)
        rows.append([f"{percent} %", *(f"{value:.1f}" for value in implied)])
    truths = [ours.synthetic(seed)[0] for seed in range(3)]
    own = [10 * np.log10(M.max() ** 2 / np.square(M).mean()) for M in truths]
    return {
        "own_peak": f"{min(own):.1f} to {max(own):.1f}",
        "peaks": table(["hidden", *COLUMNS[:-1], "DNN-NSR"], rows),
    }


def others(results: Results) -> dict[str, str]:
    rows = []
    methods = list(ours.ON_OTHERS)
    cells: dict[str, list[str]] = {
        case: [
            figure(results, f"robustness/{case}/{m}", "percent", ".2f") for m in methods
        ]
        for case in ("noise", *NETWORK_CASES, "Barbara")
    }
    cells["noise-free"] = [
        figure(results, f"robustness/noise/{m}", "clean", ".2f") for m in methods
    ]
    cells["ratings"] = [percents(results, f"table4/100k, 30 %/{m}") for m in methods]
    order = ("noise", "noise-free", *NETWORK_CASES, "Barbara", "ratings")
    columns = [best(cells[name]) for name in order]
    rows = [
        [method, *line]
        for method, line in zip(methods, zip(*columns, strict=True), strict=True)
    ]
    header = [
        "",
        "rank 10 + noise",
        "the same, against the noise-free",
        "network 10-50-200",
        "network 5-500-200",
        "Barbara, random 30 %",
        "MovieLens-100K, NMAE, percent",
    ]
    lowest = [line[methods.index("NSR")].startswith("**") for line in columns]
    return {
        "n_others": str(len(columns)),
        "n_lowest": str(sum(lowest)),
        "others": table(header, rows),
        "others_seeds": counted(results, "robustness"),
        "others_seconds": seconds(results, "robustness", methods),
    }


def picture(results: Results) -> dict[str, str]:
    cases = [f"{percent} %" for percent in ours.PICTURE_HIDDEN]
    methods = [*ours.ON_PICTURE, *ours.PATCHES]
    rows = []
    for method in methods:
        line = [method]
        for measure, form in (("psnr", ".2f"), ("ssim", ".3f")):
            columns = by_case(NSR_PICTURE[measure])
            for case in cases:
                key = f"table2/{case}/{method}"
                theirs = columns[case].get(method)
                line.append(figure(results, key, measure, form, theirs))
        rows.append(line)
    header = ["", *(f"PSNR, {c}" for c in cases), *(f"SSIM, {c}" for c in cases)]
    return {
        "picture": table(header, rows),
        "picture_seeds": counted(results, "table2"),
        "picture_seconds": seconds(results, "table2", methods),
    }


def rated(results: Results) -> dict[str, str]:
    rows = []
    methods = [*ours.NETWORKS, *ours.LINKED, "IALM", "NCARL", "SVD", "Soft-Impute"]
    for method in methods:
        line = [method]
        for case, figures in NSR_TABLE4.items():
            key = f"table4/{case}/{method}"
            theirs = dict(zip(COLUMNS, figures, strict=True)).get(method)
            mine = percents(results, key)
            line.append(mine if theirs is None else f"{mine} ({theirs:g})")
        rows.append(line)
    return {
        "ratings": table(["", *NSR_TABLE4], rows),
        "ratings_seconds": seconds(results, "table4/100k, 30 %", methods),
    }


def gradual(results: Results) -> dict[str, str]:
    names = [*(f"{mu:g}" for mu in ours.MU_MAX), "no penalties", "lambda 10", "Adam"]
    rows = []
    for case, figures in NSR_GRADUAL.items():
        for name, theirs in zip(names, [*figures, None, None, None], strict=True):
            key = f"table5/{case}/{name}"
            losses = [figure(results, key, n, ".2f") for n in ("percent", "observed")]
            psnr = figure(results, key, "psnr", ".1f", theirs)
            rows.append([case, name, *losses, psnr])
    header = ["", "mu_max", "hidden, percent", "observed, percent", "PSNR (paper's)"]
    return {
        "gradual": folded("Table V", table(header, rows)),
        "gradual_seeds": counted(results, "table5"),
    }


def extrapolation(results: Results) -> dict[str, str]:
    """Fig. 3: the loss over epochs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curves = {
        key.split("/", 1)[1].rsplit("/", 1)[0]: record["loss"]
        for key, record in results.records.items()
        if key.startswith("extrapolation/") and "loss" in record
    }
    figure_, axes = plt.subplots(2, 1, figsize=(5.6, 6), layout="constrained")
    for ax, case in zip(axes, ("synthetic", "picture"), strict=True):
        for name in ours.OMEGAS:
            losses = curves.get(f"{case}/{name}")
            if losses:
                epochs = 25 * np.arange(1, len(losses) + 1)
                ax.semilogy(epochs, losses, label=f"omega {name}")
        ax.set(title=case, xlabel="epoch", ylabel="loss / observed energy")
        ax.legend()
    save_figure(figure_, "networks-extrapolation", 115)
    rows = [
        [case, name, *(f"{curves[f'{case}/{name}'][i]:.4f}" for i in (3, 7, 15, -1))]
        for case in ("synthetic", "picture")
        for name in ours.OMEGAS
        if f"{case}/{name}" in curves
    ]
    header = ["", "omega", "epoch 100", "200", "400", str(ours.EPOCHS)]
    return {"extrapolation": table(header, rows)}


def patches(results: Results) -> dict[str, str]:
    rows = []
    for case, pnmc in PNMC_PAPER.items():
        key = f"pnmc/{case}/PNMC"
        name, pattern = case.split(", ")
        rows.append(
            [
                case,
                figure(results, key, "nmae", ".4f", pnmc),
                figure(
                    results,
                    f"pnmc/{case}/AIR",
                    "nmae",
                    ".4f",
                    AIR_TABLE1[name, pattern][-1],
                ),
                figure(results, key, "patch_size", ".0f"),
                figure(results, key, "seconds", ".0f"),
                figure(results, key, "wall", ".0f"),
            ]
        )
    lines = []
    for pattern in ours.SHIFTS:
        for what, name in (("held out", "held_out"), ("hidden", "hidden")):
            shares = [
                figure(results, f"dropped/{pattern}/{share}", name, ".4f")
                for share in ours.DROPPED
            ]
            lines.append([f"{pattern}: {what}", *best(shares)])
    header = ["NMAE", *(f"dropped {share}" for share in ours.DROPPED)]
    return {
        "patches": table(["", "PNMC", "AIR", "side", "s", "wall, s"], rows),
        "dropped": table(header, lines),
        "dropped_seeds": counted(results, "dropped"),
    }
