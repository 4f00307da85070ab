"""Writes ``pictures.md`` and its figure from the records."""

from __future__ import annotations

import importlib.util

import numpy as np

from benchmarks.reproduce import pictures as ours
from benchmarks.reproduce.page_parts import best, figure
from benchmarks.reproduce.papers import DIP_TABLE1
from benchmarks.shared.pages import save_figure, table, write_page
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
    write_page(NAME, {"color": color(results)})
    write_page(f"{NAME}-published", {"published": published(results)})
    write_page(f"{NAME}-masks", {"masked": masked(results)})


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


def published(results: Results) -> str:
    rows = []
    for name, (title, version) in VERSIONS.items():
        row = [title, version]
        for kind in ours.RATES:
            for method in ("Nonlocal", "Biharmonic"):
                key = f"gray/{name}, {kind}/{method}"
                row.append(figure(results, key, "psnr_all", ".2f"))
        row[4:4] = [f"{value:g}" for value in DIP_TABLE1[title]]
        rows.append(row)
    header = ["picture", "ours", "50 %: Nonlocal", "Biharmonic", "CSC", "DIP"]
    return table([*header, "80 %: Nonlocal", "Biharmonic"], rows)


def masked(results: Results) -> str:
    rows = []
    for name in ours.MASKED:
        for kind in ours.HOLES:
            key = f"masks/{name}, {kind}"
            cells = [
                figure(results, f"{key}/{method}", "nmae", ".4f")
                for method in ours.COMPLETERS
            ]
            if set(cells) != {"-"}:
                rows.append([name, kind, *best(cells)])
    return table(["picture", "hidden", *ours.COMPLETERS], rows)


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
