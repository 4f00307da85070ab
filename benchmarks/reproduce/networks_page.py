"""Writes ``networks.md`` from the records."""

from __future__ import annotations

import numpy as np

from benchmarks.pages import hardware, save_figure, table, write_page
from benchmarks.reproduce import networks as ours
from benchmarks.reproduce.page_parts import (
    best,
    compared,
    figure,
    first,
    percents,
    unconverged,
)
from benchmarks.reproduce.papers import AIR_TABLE1, NSR_TABLE1, NSR_TABLE4
from benchmarks.reproduce.results import Results

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
    body = [
        "# Networks: results of papers and ours",
        introduction(),
        bars(results),
        "## Table I of DNN-NSR: the synthetic matrix",
        *synthetic(results),
        "## Other data",
        *others(results),
        "## Table II: a color picture",
        *picture(results),
        "## Table IV: ratings",
        *rated(results),
        "## Table V and Fig. 3: gradual learning and extrapolation",
        *gradual(results),
        "## The patch network",
        *patches(results),
        "## Fits that did not converge",
        unconverged(results),
    ]
    write_page(NAME, body)


def introduction() -> str:
    return f"""\
`python -m benchmarks.reproduce NAME` makes this page and [its records](networks.json).
Called again, it continues from these records. NAME is `nsr-table1`, `nsr-table2`,
`nsr-table4` or `nsr-table5` (Faramarzi, Haddadi, Amini, Ahookhosh 2024, called DNN-NSR
below), or `networks` for the rest; `networks page` fits nothing.

`NSR` is `NSRCompleter()`. "NSR, paper's" is
`GradualNSRCompleter(max_iter={ours.EPOCHS})`, the paper's network and solver. AEMC is
`AutoencoderCompleter()`, DLMC `AutoencoderCompleter({ours.DEPTH})`, "linked"
`LinkedFactorizationCompleter()`; the others have the papers' names. All have their
**defaults** unless noted. They choose their parameters on held-out observed cells;
hidden cells chose nothing on this page unless noted. Figures from papers are in
brackets, and our best figure is bold. Rows are samples (columns in DNN-NSR). Matrices
are in single precision, ratings in double precision. A fit of over {ours.LIMIT}
processor seconds is stopped ("slow"). {hardware()};
other programs ran on the same processor, so seconds are processor seconds except
"wall".

Nearly all records were made when the search for a rank stopped after two successive
increases of the error; now it stops after four. The search had ended at rank 1 in three
fits of Table I at 80 %: those of NSR, BiBNN and the linked factorization. These three
records, and BiBNN's of MovieLens-1M, were made with four. Other records may have chosen
another rank than they would now.
"""[:-1]


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


def synthetic(results: Results) -> list[str]:
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
    return [
        SYNTHETIC,
        mine,
        counted(results, "table1"),
        SYNTHETIC_REASONS,
        table(["PSNR, dB", *cases], rows),
        peaks(),
        PEAKS_REASONS,
        seconds(results, "table1", methods),
    ]


def peaks() -> str:
    """The peaks that the paper's two measures imply."""
    rows = []
    for percent, psnrs in NSR_PSNR.items():
        lost = np.array(NSR_TABLE1[percent]) / 100
        implied = psnrs + 10 * np.log10(percent / 100 * lost)
        rows.append([f"{percent} %", *(f"{value:.1f}" for value in implied)])
    truths = [ours.synthetic(seed)[0] for seed in range(3)]
    own = [10 * np.log10(M.max() ** 2 / np.square(M).mean()) for M in truths]
    return (
        PEAKS.format(own=f"{min(own):.1f} to {max(own):.1f}")
        + "\n\n"
        + table(["hidden", *COLUMNS[:-1], "DNN-NSR"], rows)
    )


def others(results: Results) -> list[str]:
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
    return [
        OTHERS,
        table(header, rows),
        counted(results, "robustness"),
        OTHERS_REASONS,
        seconds(results, "robustness", methods),
    ]


def picture(results: Results) -> list[str]:
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
    return [
        PICTURE,
        table(header, rows),
        counted(results, "table2"),
        PICTURE_REASONS,
        seconds(results, "table2", methods),
    ]


def rated(results: Results) -> list[str]:
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
    return [
        RATINGS,
        table(["", *NSR_TABLE4], rows),
        RATINGS_REASONS,
        seconds(results, "table4/100k, 30 %", methods),
    ]


def gradual(results: Results) -> list[str]:
    names = [f"{mu:g}" for mu in ours.MU_MAX]
    header = ["mu_max", *names, "no penalties", "lambda 10", "Adam"]
    rows = []
    for case, figures in NSR_GRADUAL.items():
        keys = [f"table5/{case}/{name}" for name in header[1:]]
        for what, name in (
            ("hidden, percent", "percent"),
            ("observed, percent", "observed"),
        ):
            rows.append(
                [f"{case}: {what}", *(figure(results, k, name, ".2f") for k in keys)]
            )
        line = [f"{case}: PSNR (paper's)"]
        for k, theirs in zip(keys, [*figures, None, None, None], strict=True):
            line.append(figure(results, k, "psnr", ".1f", theirs))
        rows.append(line)
    shown = draw(results)
    return [
        GRADUAL,
        table(header, rows),
        counted(results, "table5"),
        GRADUAL_REASONS,
        EXTRAPOLATION,
        *shown,
    ]


def draw(results: Results) -> list[str]:
    """Fig. 3: the loss over epochs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curves = {
        key.split("/", 1)[1].rsplit("/", 1)[0]: record["loss"]
        for key, record in results.records.items()
        if key.startswith("extrapolation/") and "loss" in record
    }
    if not curves:
        return ["Not run yet."]
    figure_, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for ax, case in zip(axes, ("synthetic", "picture"), strict=True):
        for name in ours.OMEGAS:
            losses = curves.get(f"{case}/{name}")
            if losses:
                epochs = 25 * np.arange(1, len(losses) + 1)
                ax.semilogy(epochs, losses, label=f"omega {name}")
        ax.set(title=case, xlabel="epoch", ylabel="loss / observed energy")
        ax.legend()
    save_figure(figure_, "networks-extrapolation")
    rows = [
        [case, name, *(f"{curves[f'{case}/{name}'][i]:.4f}" for i in (3, 7, 15, -1))]
        for case in ("synthetic", "picture")
        for name in ours.OMEGAS
        if f"{case}/{name}" in curves
    ]
    header = ["", "omega", "epoch 100", "200", "400", str(ours.EPOCHS)]
    return [
        "![Loss over epochs](networks-extrapolation.png)",
        table(header, rows),
    ]


def patches(results: Results) -> list[str]:
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
    return [
        PATCHES,
        table(["", "PNMC", "AIR", "side", "s", "wall, s"], rows),
        PATCHES_REASONS,
        table(["NMAE", *(f"dropped {share}" for share in ours.DROPPED)], lines),
        counted(results, "dropped"),
        DROPPED_REASONS,
    ]


SYNTHETIC = """\
`X = g(1.2 (g(AB)^2 / 2 - g(AB) - 1)) + AB`, `g(x) = 1.71 tanh(2x/3)`, with A 300 x 10
and B 10 x 200 standard normal, drawn with the mask's generator
(`RandomState(20210909 + seed)`): the matrices of [the low-rank page](low-rank.md).
Figures are the share of the hidden cells' energy that is lost, in percent (the paper's
equation 66, which it calls MSE). The paper's figures are means of ten trials."""
SYNTHETIC_REASONS = """\
NSR and the linked factorization are below the paper's DNN-NSR at every rate. The
paper's own network, trained by its own solver, is not, nor are AEMC, DLMC and BiBNN: up
to 50 % they end between 10 and 13.5 %, like plain factorization
([10.3 to 11.6](low-rank.md)). They find the low-rank part and little of the rest; the
paper's figures for them are not reproduced. NSR does not transcribe the paper: it is
our network, with a sparse decoder and a start at the SVD.

The linked factorization *is* the generator: one function of each cell of a matrix of
rank 10. Its figures show that it finds this structure where it exists, and say nothing
about other data; see the next section. NSR has no link function and builds one from
`4 n_features` units."""
PEAKS = """\
PSNR is the paper's equation 65: over all cells, with exact observed cells and the peak
`max(X)`; ± is the standard deviation over seeds. The paper's two measures do not agree.
For completions that are exact at observed cells,
`PSNR = 10 log10(peak^2 / (share hidden x share lost x mean square))`, so each pair of
its figures implies a peak, given here in dB over the mean square of the matrix (ours:
{own}):"""
PEAKS_REASONS = """\
The implied peak is about 8 dB for IALM at all rates, 9 dB below ours, and 6 to 17 dB
for the networks. No single peak explains both columns. A network's own values at
observed cells do not explain them either: with our peak, IALM's 12.3 dB at 80 % is an
error of 2.9 times the energy of the matrix. Therefore we compare shares of energy."""
OTHERS = """\
A generator that suits one model would be misleading, so here are other data. Figures
are again percent of the hidden energy, with half of the cells hidden at random unless
noted. *Rank 10 + noise*: `AB` of 300 x 200 as above plus independent Gaussian noise
with a tenth of the energy of `AB` (standard deviation .32 of that of a cell), so 9.1 %
of the energy of the noisy cells cannot be predicted. The next column compares the same
completions with `AB` alone. *Network 10-50-200*: `tanh(Z W1 / sqrt(10)) W2 / sqrt(50)`
with Z 300 x 10, W1 10 x 50, W2 50 x 200 standard normal, without noise. *Network
5-500-200* is the same with 5 codes and 500 units. Barbara is one mask, ratings are one
split."""
OTHERS_REASONS = """\
No method wins everywhere, and the factors of ten and more in Table I disappear. On rank
10 with noise, NSR and the linked factorization are a little below the SVD, because
their weights shrink components that the SVD keeps. Random dense networks do not suit
the network models: with 50 units the matrix has rank 50, and with 500 the best matrix
of rank 50 is within .2 % of the energy. The nuclear norm (IALM, Soft-Impute) or the
linked factorization completes these matrices best. 300 rows are too few for the
autoencoders to find the 5 or 10 codes behind them. On Barbara, networks of whole rows
are no better than Soft-Impute; the methods below are better on pictures. On ratings the
SVD of rank 2 is best."""
PICTURE = """\
The paper's picture is not public. This is scikit-learn's `china.jpg`, averaged over
blocks of 3 x 3 pixels to 142 x 213, with its three channels side by side (142 x 639) as
in the paper. So patches and neighbors of PNMC and AIR cross from one channel to the
next at two columns. Cells are hidden one by one, the three of a pixel independently
(the paper does not specify this). PSNR is over all cells (equation 65). SSIM is
scikit-image's with its windows, averaged over the three channels, while the paper's
equation 67 is one number per picture with constants .01 and .03. Figures in brackets
are of another picture: they show how methods compare there and are not a target."""
PICTURE_REASONS = """\
Our methods rank differently from the paper's. Its IALM has 16.73 dB at 30, 40 and 50 %,
which indicates a failed fit. Here IALM, NCARL and AEMC are within half a decibel of
each other, and the other networks of whole rows are 1 to 4 dB worse: a picture has no
link function and no small set of units for its columns. Methods that use neighboring
pixels do better: the patch network PNMC is best by 1 dB and more, and AIR is second
in SSIM."""
RATINGS = """\
NMAE in percent: the mean absolute error divided by 4, predictions clipped to [1, 5], 30
or 50 % of the ratings held out at random, one split each
(`RandomState(20210909).random_sample(n) <= rate`). The networks complete the dense
matrix, 943 x 1682 or 6040 x 3952. [The low-rank page](low-rank.md) has alternating
least squares on the same splits: 18.3 and 18.5 on MovieLens-100K, 17.0 on MovieLens-1M
at 30 %."""
RATINGS_REASONS = """\
15.54 % on MovieLens-100K would be a mean absolute error of .62. Neither these networks
nor any other method here reproduces it; the best on [the low-rank page](low-rank.md),
with a fifth held out instead of 30 %, is 17.4 %. Our figures of MovieLens-100K lie
between 18.5 and 19.7 %. The paper's figures of AEMC are in that range; those of BiBNN
and DNN-NSR are not. The plain SVD of rank 2, in 15 seconds, is better than all networks
here, and alternating least squares with its own weights is better than that. NSR
chooses a code of size 3 and the largest of its weights on the decoder, so it adds
little to the SVD. On MovieLens-1M at 30 %, AEMC is 1.8 points worse than least squares,
no better than on the smaller data. BiBNN, which first tries the ranks of a dense SVD,
has not finished after 300 seconds ("slow"). Cells with - were not run for lack of time.
On MovieLens-1M that includes NSR: it took 245 seconds on MovieLens-100K, and this
matrix has fifteen times the cells."""
GRADUAL = """\
The paper's network trained by the paper's solver, with `mu_min = 1` and `mu_max` from
1e6 to 1, as in its Table V: percent of the energy lost at hidden and at observed cells,
and PSNR. "No penalties" has alpha = beta = 0 and the default `mu_max` of 1e5. "Adam"
trains the same network from the same start on the same squares and `lambda_weights`
only, full batch, for 1000 steps at a rate that decreases from .01. The picture is that
of Table II at 50 %."""
GRADUAL_REASONS = """\
Table V is not reproduced, and this network does not reproduce Table I either. In the
paper, PSNR rises by 9 to 13 dB as `mu_max` goes from 1 to 1e6. Here it changes by less
than .1 dB at 50 %, by .4 dB at 80 % in the opposite direction, and by 1.1 dB on the
picture in the paper's direction. These columns and the formula suggest three reasons:

- *The penalties hardly act.* Minimized over V, `beta |V|_* + |W - V|^2 / (2 mu)` is at
  most `|W|^2 / (2 mu)` (at V = 0). So at mu = 1, however large beta is, the penalty is
  a weight of at most 1/2 on squares, next to a sum of squares over tens of thousands of
  cells, and with `mu_max` = 1e5, mu is above 100 for 98 % of the epochs. Without the
  penalties the result is the same to .1 points. Where mu is always 1, the penalties are
  that weight of 1/2; they help a little at 80 % and hurt on the picture. The same holds
  for `lambda_weights` of .001 in that sum, which suggests that the paper's loss is a
  mean; but 10 ("lambda 10") changes little either.
- *The solver is not the cause.* Adam fits the observed cells of the synthetic matrix
  far better and the hidden ones far worse: slow convergence of the solver regularizes
  this network. It does not generalize, whatever trains it.
- *Sparsity of the output layer matters.* NSR has an l1 norm on its weights, so that few
  units serve each column, and a linear skip connection."""
EXTRAPOLATION = """\
Fig. 3: `|P(f - M)|_F^2 + lambda sum |W|_F^2` divided by the observed energy, on the
synthetic matrix (80 % hidden, `mu_max` 1e5) and the picture (50 %, 1e6), one start. As
in the paper, extrapolation helps, by about a tenth of the loss after 400 epochs. A
constant .45 and the adaptive weight are within 2 % of each other: with gamma = 10 the
adaptive weight is .41 where L and delta are stationary. At the end of the schedule mu
decreases, and the penalties outweigh the loss."""
PATCHES = """\
NMAE of `PatchCNNCompleter()` on the pictures and masks of [Table 1 of
AIR](air-table1.md); figures in brackets are that table's columns; one seed. Only the
abstract of PNMC's own paper is public, so the network is our reading of it."""
PATCHES_REASONS = """\
PNMC is below the paper's column by about a third or more everywhere, and below AIR's,
both the paper's and ours. It takes three to eight times AIR's time. Seconds of PNMC
are those of the processor beside other programs, which make them longer.

In training, a share of the patches loses the cells that will be unknown around a random
hidden cell when its turn comes. The share is computed from the mask. Here it is judged
by observed cells only, beside fixed shares: besides the mask itself, a shifted copy of
the patch or the texture mask is hidden in Barbara, two shifts each. The NMAE is over
the copy ("held out") and over the mask ("hidden")."""
DROPPED_REASONS = """\
By the held-out cells, dropping cells helps on both patterns, and the computed share is
the best of all. The two shifts differ by more than the shares above 0 do. The rule of 3
known neighbors was not tested in this way."""
