"""Elements that several pages share."""

from __future__ import annotations

from benchmarks.shared.pages import best, table
from benchmarks.shared.results import Results


def figure(results: Results, key: str, name: str, form: str, paper=None) -> str:
    """Our mean, with the paper's figure in brackets if there is one."""
    if results.too_slow(key):
        return "slow"
    mean = results.mean(key, name)
    mine = "-" if mean is None else format(mean, form)
    return mine if paper is None else f"{mine} ({paper:g})"


def compared(results, part: str, cases, methods, name: str, form: str, papers=None):
    """One row per method, one column per case."""
    columns = [
        best(
            [
                figure(
                    results,
                    f"{part}/{case}/{method}",
                    name,
                    form,
                    (papers or {}).get(case, {}).get(method),
                )
                for method in methods
            ]
        )
        for case in cases
    ]
    rows = [
        [method, *cells]
        for method, cells in zip(methods, zip(*columns, strict=True), strict=True)
    ]
    return table(["", *cases], rows)


def first(results: Results, key: str, name: str) -> float | None:
    """The value of the first seed."""
    return results.records.get(f"{key}/0", {}).get(name)


def percents(results: Results, key: str) -> str:
    """The mean NMAE in percent."""
    if results.too_slow(key):
        return "slow"
    mean = results.mean(key, "nmae")
    return "-" if mean is None else f"{100 * mean:.2f}"


def unconverged(results: Results) -> str:
    """A list of the fits with convergence warnings."""
    counts: dict[tuple[str, str], int] = {}
    for key, record in results.records.items():
        part, (_, method, _) = key.split("/", 1)[0], key.rsplit("/", 2)
        if record.get("warned"):
            counts[part, method] = counts.get((part, method), 0) + record["warned"]
    if not counts:
        return "None."
    listed = [f"{part}: {method} {n}" for (part, method), n in sorted(counts.items())]
    return (
        "Fits that warned (they stopped at `max_iter` with the residual above `tol`; "
        "the tables include their figures): " + "; ".join(listed) + "."
    )
