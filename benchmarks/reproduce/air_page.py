"""Writes the pages of AIR's tables from their records."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import geometric_mean

from benchmarks.reproduce.air import ABLATED, CHOICES, N_ITER, REPEATS, SEEDS
from benchmarks.reproduce.papers import AIR_METHODS, AIR_TABLE1, AIR_TABLE2
from benchmarks.shared.pages import chart, dots, folded, table, write_page
from benchmarks.shared.results import Results

AIR = {f"{name}, {pattern}": paper[-1] for (name, pattern), paper in AIR_TABLE1.items()}
PAPERS_WAY = "the paper's way"
OURS = "AIRCompleter(), the default"


def table1(results: Results) -> None:
    every, air = [], []
    found = {case: results.records[case] for case in AIR}
    chosen = {case: r.get("chosen", r["AIR"]) for case, r in found.items()}
    for (name, pattern), paper in AIR_TABLE1.items():
        case = f"{name}, {pattern}"
        ours = found[case]
        others = [
            f"{ours[m]:.4f} ({p})" if m in ours else "-"
            for m, p in zip(AIR_METHODS, paper, strict=True)
        ]
        every.append([name, pattern, *others])
        errors = f"{ours['AIR']:.4f}", f"{chosen[case]:.5f}", str(AIR[case])
        ratios = [f"{x / AIR[case]:.2f}" for x in (ours["AIR"], chosen[case])]
        air.append([name, pattern, *errors, *ratios, f"{ours['seconds']:.1f}"])
    header = ["AIR", "chosen", "paper", "AIR / paper", "chosen / paper", "AIR, s"]
    points = {
        case: {
            "chosen on held-out cells": chosen[case] / AIR[case],
            "defaults": found[case]["AIR"] / AIR[case],
        }
        for case in found
    }
    fields = {
        "n_cases": len(AIR),
        "n_lower": sum(found[case]["AIR"] < AIR[case] for case in AIR),
        "n_chosen": sum(chosen[case] < AIR[case] for case in AIR),
        "chart": dots(
            "air-table1", "NMAE / NMAE of AIR in the paper", points, log=True, at=1
        ),
        "choices": ", ".join(f"`{p or 'the defaults'}`" for p in CHOICES),
        "air": table(["data", "hidden", *header], air),
        "every": table(["data", "hidden", *AIR_METHODS], every),
    }
    write_page("air-table1", fields)


def nonlocal_rows(results: Results) -> None:
    ours = {case: record["nmae"] for case, record in results.records.items()}
    ratios = {case: error / AIR[case] for case, error in ours.items()}
    rows = [
        [
            *case.split(", "),
            f"{AIR[case]}",
            f"{error:.4f}",
            f"{ratios[case]:.2f}",
            f"{results.records[case]['seconds']:.1f}",
        ]
        for case in AIR
        if (error := ours.get(case))
    ]
    points = {
        case: {"NonlocalCompleter": ours[case], "AIR, paper": AIR[case]}
        for case in AIR
        if case in ours
    }
    fields = {
        "n_seeds": len(SEEDS),
        "ratios": span(ratios.values()),
        "mean": f"{geometric_mean(ratios.values()):.2f}",
        "chart": dots("air-nonlocal", "NMAE over hidden cells", points),
        "rows": table(
            ["data", "hidden", "AIR, paper", "ours: NonlocalCompleter", "ratio", "s"],
            rows,
        ),
    }
    write_page("air-nonlocal", fields)


def table2(results: Results) -> None:
    rows, points = [], {}
    for (m, depth), (dmf, rdmf, air) in AIR_TABLE2.items():
        ms = results.records[f"{m}, {depth}"]
        ours = [ms[name] / ms["DMF, ms"] for name in ("AIR, ms", "RDMF, ms")]
        papers = air / dmf, rdmf / dmf
        ratios = [f"{x:.2f} ({p:.2f})" for x, p in zip(ours, papers, strict=True)]
        rows.append([f"{m}", f"{depth}", *(f"{t:.3f}" for t in ms.values()), *ratios])
        points[f"m = {m}, L = {depth}"] = {"ours": ours[0], "paper": papers[0]}
    header = ["m", "L", "DMF, ms", "RDMF, ms", "AIR, ms", "AIR / DMF", "RDMF / DMF"]
    fields = {
        "ours": span(point["ours"] for point in points.values()),
        "paper": span(point["paper"] for point in points.values()),
        "chart": dots("air-table2", "time of AIR / time of DMF", points),
        "repeats": REPEATS,
        "n_iter": N_ITER,
        "rows": table(header, rows),
    }
    write_page("air-table2", fields)


def ablation(results: Results) -> None:
    cases = [f"{name}, {pattern}" for name, pattern in ABLATED]
    known = results.records

    def increase(change: str) -> float:
        return geometric_mean(
            known[change][case]["hidden"] / known["default"][case]["hidden"]
            for case in cases
            if case in known[change]
        )

    def errors(change: str, kind: str) -> list[str]:
        found = known[change]
        return [f"{found[c][kind]:.4f}" if c in found else "-" for c in cases]

    changes = sorted(known, key=increase)
    seconds = {change: known[change]["seconds"] for change in known}
    hidden = [[c, *errors(c, "hidden"), f"{seconds[c]:.1f}"] for c in changes]
    held_out = [[c, *errors(c, "held out")] for c in changes]
    increases = {OURS if c == "default" else c: increase(c) for c in known}
    fields = {
        "n_cases": len(cases),
        "increase": f"{increase(PAPERS_WAY):.2f}",
        "slower": f"{seconds[PAPERS_WAY] / seconds['default']:.0f}",
        "chart": chart("air-ablation", "NMAE / NMAE of the default", increases),
        "hidden": table(["change", *cases, "s"], hidden),
        "held_out": folded(
            "The same changes on held-out cells",
            table(["change", *cases], held_out),
        ),
    }
    write_page("air-ablation", fields)


def span(values: Iterable[float]) -> str:
    """The smallest and the largest number."""
    known = [*values]
    return f"{min(known):.2f} to {max(known):.2f}"
