"""Tables and charts of a release: ``python benchmarks/report.py [FOLDER]``.

Prints the tables of ``docs/benchmarks.md`` as Markdown, and draws its charts to
``docs/images``. FOLDER holds the CSV files that the other scripts write; by default, it
is that of the latest release in ``benchmarks/results``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

HERE = Path(__file__).parent
IMAGES = HERE.parent / "docs" / "images"
TABLES = [
    "airfoil",
    "energy",
    "diabetes",
    "letter",
    "wine",
    "concrete",
    "iris",
    "linnerud",
    "digits",
    "spambase",
    "breast cancer",
    "breast cancer, diagnostic",
]
PEERS = "Imputer|hyperimpute|gcimpute|miceforest"


class Results:
    """The rows of a release, by file and subject."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __call__(self, name: str, subject: str, measure: str | None = None):
        path = self.folder / f"{name}.csv"
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
        rows = rows[rows["subject"] == subject]
        rows["seconds"] = pd.to_numeric(rows["seconds"], errors="coerce")
        if measure:
            rows = rows[rows["measure"] == measure]
            rows = rows.assign(value=rows["value"].astype(float))
        return rows


def geometric(values: pd.Series) -> float:
    return float(np.exp(np.log(values).mean()))


def show(title: str, frame: pd.DataFrame, form: str = "{:.3f}") -> None:
    """Print a table in Markdown; empty cells where a method has no result."""

    def text(value: object) -> str:
        if isinstance(value, str):
            return value
        return "" if pd.isna(value) else form.format(value)

    print(f"\n### {title}\n")
    index = [" ".join(map(str, np.atleast_1d(key))) for key in frame.index]
    for row in [["", *frame.columns], ["---"] * (len(frame.columns) + 1)]:
        print("|", " | ".join(map(str, row)), "|")
    for name, row in zip(index, frame.to_numpy(object), strict=True):
        print("|", " | ".join([name, *map(text, row)]), "|")


def bars(name: str, values: pd.Series, label: str) -> None:
    """A horizontal bar for each method, best on top; completers of skmc in color."""
    values = values[::-1]
    color = ["0.7" if re.search(PEERS, method) else "C0" for method in values.index]
    height = 0.8 + 0.28 * len(values)
    figure, axes = plt.subplots(figsize=(6, height), layout="constrained")
    drawn = axes.barh(values.index, values, color=color)
    axes.bar_label(drawn, fmt=" %.2f")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(label)
    axes.margins(x=0.12, y=0.02)
    figure.savefig(IMAGES / f"benchmarks-{name}.png", dpi=100)
    plt.close(figure)


def tables(results: Results) -> None:
    rows = results("tables", "auto", "rmse")
    for title, suffix in (("shuffled", ""), ("in file order", " in file order")):
        of = rows[rows["data"].isin([t + suffix for t in TABLES])]
        errors = of.pivot_table(
            index=["data", "mask"], columns="method", values="value"
        )
        ratio = errors.div(errors["IterativeImputer"], axis=0)
        found = pd.DataFrame(
            {
                "error": ratio.apply(geometric),
                "largest": ratio.max(),
                "seconds": of.groupby("method")["seconds"].median(),
                "cases": errors.count(),
            }
        ).sort_values("error")
        found["cases"] = found["cases"].astype(str) + f" of {len(errors)}"
        show(f"Tables, {title}: error relative to IterativeImputer", found, "{:.3g}")
        if not suffix:
            bars("tables", found["error"].head(16), "error / error of IterativeImputer")


def error_over_time(results: Results) -> None:
    """Geometric means and median seconds of what all tables have."""
    rows = results("tables", "over time", "rmse")
    errors = rows.pivot_table(index=["data", "mask"], columns="method", values="value")
    errors = errors.dropna(axis="columns")
    ratio = errors.div(errors["IterativeImputer, 10"], axis=0).apply(geometric)
    seconds = rows.groupby("method")["seconds"].median()
    found = pd.DataFrame({"error": ratio, "seconds": seconds}).dropna()
    found.index.name = None
    # hyperimpute decides itself how long it runs.
    plain = results("tables", "auto", "rmse").set_index(["method", "data", "mask"])
    errors_of = plain["value"].unstack("method").loc[errors.index]
    own_time = plain["seconds"]["hyperimpute"].loc[errors.index].median()
    ratio_of = errors_of["hyperimpute"] / errors_of["IterativeImputer"]
    found.loc["hyperimpute, default"] = geometric(ratio_of), own_time
    named = found.index.str.rsplit(", ", n=1, expand=True)
    found["method"] = named.get_level_values(0)
    found["given"] = pd.to_numeric(named.get_level_values(1), errors="coerce")
    found = found.sort_values(["method", "given"])
    show(f"Error after some time, {len(errors)} cases", found[["error", "seconds"]])
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for method, of in found.groupby("method"):
        width = 2.5 if method == "AutoCompleter" else 1.2
        axes.plot(of["seconds"], of["error"], "o-", lw=width, label=method)
    axes.set_xscale("log")
    axes.set_xlabel("processor seconds of one thread, median")
    axes.set_ylabel("error / error of IterativeImputer")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(IMAGES / "benchmarks-over-time.png", dpi=100)
    plt.close(figure)


def draws(results: Results) -> None:
    found = {}
    for measure in ("energy", "crps", "coverage", "coefficients"):
        rows = results("draws", "draws", measure)
        values = rows.pivot_table(
            index=["data", "mask"], columns="method", values="value"
        )
        if measure in ("energy", "crps"):
            values = values.div(values["`GaussianCompleter`"], axis=0).apply(geometric)
            found[measure] = values
        else:
            found[measure] = values.mean()
    found["seconds"] = rows.groupby("method")["seconds"].median()
    show("Draws", pd.DataFrame(found).sort_values("energy"), "{:.2f}")
    rows = results("draws", "intervals", "coverage")
    show(
        "Coverage of 90 % intervals",
        rows.pivot_table(index="method", columns="mask", values="value"),
        "{:.2f}",
    )


def surveys(results: Results) -> None:
    found = {}
    for measure in ("error", "means"):
        rows = results("surveys", "surveys", measure)
        values = rows.pivot_table(index="data", columns="method", values="value")
        values = values.div(values["IterativeImputer"], axis=0)
        found[measure] = values.apply(geometric)
    found["seconds"] = rows.groupby("method")["seconds"].median()
    show("Weights of rows", pd.DataFrame(found).sort_values("error"), "{:.2f}")


def detection(results: Results) -> None:
    real = ["Khan", "breast cancer", "wine", "yeast"]
    for title, keep in (("made", False), ("real", True)):
        rows = results("detection", "detection", "error")
        rows = rows[rows["data"].isin(real) == keep]
        values = rows.pivot_table(index="method", columns="mask", values="value")
        order = ["0% below", "50% below", "100% below"]
        values = values[order].sort_values("50% below")
        show(f"Values below a limit, {title} tables", values, "{:.2f}")


def counts(results: Results) -> None:
    for title, measure in (("error", "error"), ("false correlations", "false")):
        rows = results("counts", "counts", measure)
        values = rows.pivot_table(index="method", columns="data", values="value")
        values["seconds"] = rows.groupby("method")["seconds"].median()
        show(f"Smoothed counts, {title}", values, "{:.2f}")


def missing_patterns(results: Results) -> None:
    rows = results("tables", "patterns", "rmse")
    values = rows.pivot_table(index=["mask", "data"], columns="method", values="value")
    values = values.dropna()
    ratio = values.div(values.pop("means"), axis=0)
    found = ratio.groupby(level="mask").agg(geometric)
    found.loc["all"] = ratio.apply(geometric)
    show("Patterns", found[found.loc["all"].sort_values().index])


def models(results: Results) -> None:
    rows = results("pipeline", "pipeline")
    found = {}
    for measure in ("linear model", "MLP", "boosted trees"):
        of = rows[rows["measure"] == measure].assign(
            value=lambda x: x["value"].astype(float)
        )
        for mask in ("20%", "50%"):
            one = of[of["mask"] == mask].pivot_table(
                index=["data", "seed"], columns="method", values="value"
            )
            gain = 100 * one.sub(one["column means"], axis=0)
            found[f"{measure}, {mask}"] = gain.groupby(level="data").mean().mean()
    show("Points of a model gained over column means", pd.DataFrame(found), "{:+.1f}")


def pictures(results: Results) -> None:
    rows = results("pictures", "color", "psnr")
    found = rows.pivot_table(index="method", columns="mask", values="value")
    found["mean"] = found.mean(axis=1)
    found["seconds"] = rows.groupby("method")["seconds"].mean()
    show("Color pictures, PSNR", found.sort_values("mean", ascending=False), "{:.1f}")
    rows = results("pictures", "gray", "psnr_all")
    show(
        "Gray pictures, PSNR over all pixels",
        rows.pivot_table(index=["data"], columns=["mask", "method"], values="value"),
        "{:.2f}",
    )
    rows = results("pictures", "few pixels", "psnr")
    found = rows.pivot_table(index="method", columns="mask", values="value")
    found["seconds"] = rows.groupby("method")["seconds"].mean()
    show("Few pixels, PSNR", found, "{:.1f}")
    rows = results("cubes", "cubes", "psnr")
    found = rows.pivot_table(index=["mask", "method"], columns="data", values="value")
    found["seconds"] = rows.groupby(["mask", "method"])["seconds"].mean()
    show("Cubes and videos, PSNR", found, "{:.1f}")


def ratings(results: Results) -> None:
    rows = results("ratings", "stars", "rmse")
    found = rows.pivot_table(index="method", columns="data", values="value")
    large = rows[rows["data"] == "1m, 90/10"].set_index("method")["seconds"]
    show("Ratings, RMSE", found.assign(seconds=large), "{:.4g}")
    show(
        "Films without ratings",
        results("ratings", "films")
        .assign(value=lambda x: x["value"].astype(float))
        .pivot_table(index="method", columns="measure", values="value"),
    )
    rows = results("implicit_feedback", "likes", "NDCG")
    found = rows.pivot_table(index="method", columns="data", values="value")
    show("Implicit feedback, NDCG@100", found, "{:.4f}")
    rows = results("implicit_feedback", "ncf")
    rows = rows[rows["measure"].isin(["HR@10", "NDCG@10"])].assign(
        value=lambda x: x["value"].astype(float)
    )
    show(
        "The protocol of NCF",
        rows.pivot_table(index="method", columns="measure", values="value"),
        "{:.4f}",
    )


def series_and_panels(results: Results) -> None:
    rows = results("series_panel", "series", "rmse")
    found = rows.pivot_table(index="method", columns=["data", "mask"], values="value")
    found.columns = [", ".join(column) for column in found.columns]
    show("Series, RMSE", found, "{:.3g}")
    for subject, index in (("panel", "method"), ("untreated", "data")):
        rows = results("series_panel", subject, "rmse")
        found = rows.pivot_table(index="data", columns="method", values="value")
        if index == "method":
            found = found.T
            found["relative"] = found.div(found.min(), axis=1).apply(geometric, axis=1)
            found["seconds"] = rows.groupby("method")["seconds"].sum()
            found = found.sort_values("relative")
        show(f"Placebo RMSE, {subject}", found, "{:.4g}")


def drugs(results: Results) -> None:
    rows = results("drugs", "drugs", "aupr")
    rows = rows[~rows["mask"].str.contains("zeros")]
    found = rows.pivot_table(index=["data", "mask"], columns="method", values="value")
    show("Drugs and targets, AUPR", found)


def growth(results: Results) -> None:
    rows = results("scaling", "growth", "seconds of fit_transform")
    sizes = rows["data"].str.split(" x ", expand=True).astype(int)
    rows = rows.assign(cells=sizes[0] * sizes[1])
    figure, axes = plt.subplots(
        1, 2, figsize=(10, 4.6), sharey=True, layout="constrained"
    )
    for ax, shape in zip(axes, ("square", "table"), strict=True):
        for k, (name, of) in enumerate(rows[rows["mask"] == shape].groupby("method")):
            style = ["-", "--", ":"][k // 10]
            label = name.removesuffix("Completer")
            ax.loglog(of["cells"], of["value"], style, color=f"C{k % 10}", label=label)
        ax.set(title=f"{shape}s", xlabel="cells")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("processor seconds of fit_transform")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside right", fontsize="small"
    )
    figure.savefig(IMAGES / "benchmarks-growth.png", dpi=100)
    plt.close(figure)


def main(arguments: list[str]) -> None:
    releases = sorted((HERE / "results").iterdir())
    results = Results(Path(arguments[0]) if arguments else releases[-1])
    for part in (tables, error_over_time, draws, surveys, detection, counts):
        part(results)
    for part in (missing_patterns, models, pictures):
        part(results)
    for part in (ratings, series_and_panels, drugs, growth):
        part(results)


if __name__ == "__main__":
    main(sys.argv[1:])
