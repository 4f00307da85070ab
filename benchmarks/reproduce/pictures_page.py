"""Writes ``pictures.md`` and its figure from the records."""

from __future__ import annotations

import importlib.util
from statistics import geometric_mean

import numpy as np

from benchmarks.reproduce import pictures as ours
from benchmarks.reproduce.page_parts import figure
from benchmarks.reproduce.papers import DIP_TABLE1
from benchmarks.shared.pages import best, chart, dots, save_figure, table, write_page
from benchmarks.shared.results import Results

NAME = "pictures"  # of the page and of its records
SHOWN = ("flower", "text"), ("china", "random 80 %"), ("chelsea", "scratches")
VERSIONS = {
    "house_256": ("House", "256 x 256, as in most papers"),
    "peppers_256": ("Peppers", "256 x 256, as in most papers"),
    "barbara_512": ("Barbara", "512 x 512"),
    "boat_256": ("Boat", "256 x 256; papers use 512 x 512, which is easier"),
    "cameraman_240": ("C.man", "240 x 240, resized; papers use 256 x 256"),
}


def write(results: Results) -> None:
    if results.records:
        draw()
    pages(results)


def pages(results: Results) -> None:
    """Write the pages, without the figure, which needs fits."""
    measured = {key.split("/")[0] for key in results.records}
    if "color" in measured:
        write_page(NAME, {"color": color(results), **color_means(results)})
    if "gray" in measured:
        write_page(f"{NAME}-published", published(results))
    if "masks" in measured:
        write_page(f"{NAME}-masks", masked(results))


def color_means(results: Results) -> dict[str, str]:
    """Mean PSNR of the best completers and of the best method of OpenCV."""
    cases = [f"color/{name}, {kind}" for kind in ours.MASKS for name in ours.COLOR]
    means = {
        method: np.mean(found)
        for method in ours.METHODS
        if None not in (found := [results.mean(f"{c}/{method}", "psnr") for c in cases])
    }
    opencv = max((means[m] for m in means if "OpenCV" in m), default=np.nan)
    return {
        "nonlocal_mean": f"{means['Nonlocal']:.1f}",
        "biharmonic_mean": f"{means['Biharmonic']:.1f}",
        "opencv_mean": f"{opencv:.1f}",
    }


def color(results: Results) -> str:
    parts = []
    for kind in ours.MASKS:
        cases = {
            name: f"color/{name}, {kind}"
            for name in ours.COLOR
            if results.mean(f"color/{name}, {kind}/Biharmonic", "psnr") is not None
        }
        rows = []
        for method in ours.METHODS:
            means = [
                results.mean(f"{case}/{method}", "psnr") for case in cases.values()
            ]
            seconds = [
                results.mean(f"{case}/{method}", "seconds") for case in cases.values()
            ]
            if not means or None in means:
                continue
            cells = [f"{mean:.2f}" for mean in means]
            rows.append([method, *cells, f"{np.mean(means):.2f}"])
            rows[-1].append(f"{np.mean(seconds):.1f}")
        if not rows:
            continue
        columns = list(zip(*rows, strict=True))
        best = [max(column, key=float) for column in columns[1:-1]]
        rows = [
            [row[0]]
            + [f"**{c}**" if c == b else c for c, b in zip(row[1:], best, strict=False)]
            + [row[-1]]
            for row in rows
        ]
        header = ["", *cases, "mean", "seconds"]
        parts += [f"## {kind.capitalize()}", table(header, rows)]
    return "\n\n".join(parts)


def published(results: Results) -> dict[str, object]:
    rows, points = [], {}
    for name, (title, version) in VERSIONS.items():
        row = [title, version]
        for kind in ours.RATES:
            for method in ("Nonlocal", "Biharmonic"):
                key = f"gray/{name}, {kind}/{method}"
                row.append(figure(results, key, "psnr_all", ".2f"))
        points[title] = {
            "NonlocalCompleter": float(row[2]),
            "DIP": DIP_TABLE1[title][1],
            "BiharmonicCompleter": float(row[3]),
            "CSC": DIP_TABLE1[title][0],
        }
        row[4:4] = [f"{value:g}" for value in DIP_TABLE1[title]]
        rows.append(row)
    header = ["picture", "ours", "50 %: Nonlocal", "Biharmonic", "CSC", "DIP"]
    gains = [p["NonlocalCompleter"] - p["DIP"] for p in points.values()]
    return {
        "n_higher": sum(gain > 0 for gain in gains),
        "n_pictures": len(gains),
        "gain": f"{np.mean(gains):+.1f}",
        "chart": dots(f"{NAME}-published", "PSNR with 50 % missing, dB", points),
        "published": table([*header, "80 %: Nonlocal", "Biharmonic"], rows),
    }


def masked(results: Results) -> dict[str, object]:
    rows, errors, others = [], [], []
    for name in ours.MASKED:
        for kind in ours.HOLES:
            cells = [
                figure(results, f"masks/{name}, {kind}/{method}", "nmae", ".4f")
                for method in ours.COMPLETERS
            ]
            rows.append([name, kind, *best(cells)])
            errors.append([float(cell) for cell in cells])
            first = [*ours.COMPLETERS][int(np.argmin(errors[-1]))]
            if first != "Nonlocal":
                others.append(f"{name}, {kind} ({first})")
    lowest = np.min(errors, axis=1)
    means = {
        f"{method}Completer": geometric_mean(column / lowest)
        for method, column in zip(ours.COMPLETERS, np.transpose(errors), strict=True)
    }
    return {
        "n_lowest": len(errors) - len(others),
        "n_cases": len(errors),
        "others": "; ".join(others) or "none",
        "second": f"{sorted(means.values())[1]:.2f}",
        "chart": chart(f"{NAME}-masks", "NMAE / lowest of the case", means),
        "masked": table(["picture", "hidden", *ours.COMPLETERS], rows),
    }


def draw() -> None:
    """Three damaged pictures, completed by each method."""
    import matplotlib.pyplot as plt

    from skmc import pictures

    methods = ["Biharmonic", "Nonlocal"]
    if importlib.util.find_spec("cv2"):
        methods.insert(0, "OpenCV, Telea")
    rows, cols = len(SHOWN), len(methods) + 2
    whole, axes = plt.subplots(
        rows, cols, figsize=(3 * cols, 3.25 * rows), layout="constrained"
    )
    for line, (name, kind) in zip(axes, SHOWN, strict=True):
        truth = ours.color_picture(name)
        missing = ours.mask(kind, truth.shape[:2])
        damaged = np.where(missing[..., None], np.uint8(255), truth)
        panels = {f"{name}, {kind}": damaged}
        for method in methods:
            if method.startswith("OpenCV"):
                found = ours.opencv(method.removeprefix("OpenCV, "), damaged, missing)
            else:
                completer = ours.COMPLETERS[method]()
                found = pictures.complete(damaged, missing, completer)
            score = ours.decibels(found, truth, missing)["psnr"]
            panels[f"{method}: {score:.1f} dB"] = found
        panels["truth"] = truth
        for axis in line:
            axis.set_axis_off()
        for axis, (title, picture) in zip(line, panels.items(), strict=False):
            axis.imshow(picture)
            axis.set_title(title)
    save_figure(whole, NAME)
