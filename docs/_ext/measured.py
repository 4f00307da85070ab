"""Tables of the pages, generated from docs/reproduction/records.

``python docs/_ext/measured.py`` writes the figures of the README's table again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from record_states import commits

RESULTS = Path(__file__).parents[1] / "reproduction"
RECORDS = RESULTS / "records"

# The call that stands for each method of the results.
CALLS = {
    "AIR": "AIRCompleter()",
    "AEMC": "AutoencoderCompleter()",
    "DLMC": "AutoencoderCompleter((100, 50))",
    "DMF": "DMFCompleter()",
    "RDMF": 'DMFCompleter("tv")',
    "DMF+DE": 'DMFCompleter("dirichlet")',
    "BiBNN": "BiBNNCompleter()",
    "NSR": "NSRCompleter()",
    "linked": "LinkedFactorizationCompleter()",
    "Nonlocal": "NonlocalCompleter()",
    "PNMC": "PatchCNNCompleter()",
    "IALM": "IALMCompleter()",
    "SVT": "SVTCompleter()",
    "Soft-Impute": "SoftImputeCompleter()",
    "Factorization": "FactorizationCompleter()",
    "Bayesian": "BayesianFactorizationCompleter(heteroscedastic=True)",
    "Bayesian, implicit": "BayesianFactorizationCompleter(implicit=True, "
    "heteroscedastic=True)",
    "TNNR-ADMM": "TNNRCompleter()",
    "TNNR-APGL": 'TNNRCompleter(solver="apgl")',
    "TNN-WRE": "TNNRCompleter(weighted=True)",
    "NCARL": "NCARLCompleter()",
    "SVD": "SVDCompleter()",
    "KNN": "KNNCompleter()",
    "means": "MeanCompleter()",
}
COMMANDS = {
    "air": "air-table1",
    "nonlocal": "air-nonlocal",
    "pictures": "low-rank pictures",
    "netflix": "low-rank netflix",
    "drugs": "low-rank drugs",
    "expression": "low-rank expression",
    "ratings": "low-rank ratings",
    "synthetic": "low-rank synthetic",
    "pnmc": "networks pnmc",
    "robustness": "networks robustness",
    "table1": "nsr-table1",
    "table2": "nsr-table2",
}


class Row(NamedTuple):
    kind: str
    missing: str
    size: str
    metric: str  # key of the record
    sources: tuple[tuple[str, str], ...]  # (part of the results, data)


def same(*parts: str, data: str) -> tuple[tuple[str, str], ...]:
    return tuple((part, data) for part in parts)


ALL_PICTURES = ("air", "nonlocal", "pictures", "pnmc")
ROWS = [
    Row("picture (Barbara)", "30 % at random", "240 x 240", "nmae",
        same(*ALL_PICTURES, data="Barbara, random 30 %")),
    Row("picture (Baboon)", "30 % at random", "240 x 240", "nmae",
        same(*ALL_PICTURES, data="Baboon, random 30 %")),
    Row("picture (Barbara)", "two patches", "240 x 240", "nmae",
        same(*ALL_PICTURES, data="Barbara, patch")),
    Row("picture (Barbara)", "texture", "240 x 240", "nmae",
        same(*ALL_PICTURES, data="Barbara, texture")),
    Row("picture, three channels", "50 % at random", "142 x 639", "psnr",
        same("table2", data="50 %")),
    Row("ratings (MovieLens-100K, u1)", "94 % unrated, a fifth of the ratings hidden",
        "943 x 1682", "rmse", same("ratings", data="100k, u1")),
    Row("ratings (MovieLens-1M)", "96 % unrated, a tenth of the ratings hidden",
        "6040 x 3952", "rmse", same("ratings", data="1m, 90/10")),
    Row("ratings with groups (Syn-Netflix)", "70 % at random", "150 x 200", "nmae",
        (("air", "Syn-Netflix, random 70 %"), ("netflix", "random 70 %"))),
    Row("drugs and targets (ion channels)", "20 % at random", "210 x 204", "nmae",
        same("air", "drugs", data="IC, random 20 %")),
    Row("drugs and targets (GPCR)", "20 % at random", "223 x 95", "nmae",
        same("air", "drugs", data="GPCR, random 20 %")),
    Row("drugs and targets (ion channels), ranking of pairs",
        "one fold of five", "210 x 204", "aupr", same("drugs", data="IC, five folds")),
    Row("gene expression (Khan)", "10 % at random", "2308 x 63", "nrmse",
        same("expression", data="Khan, 10 %")),
    Row("gene expression (yeast)", "16 %: 6 % originally, then 10 % of the rest hidden",
        "6178 x 77", "nrmse", same("expression", data="yeast, 10 %")),
    Row("rank 10 with noise", "50 % at random", "300 x 200", "percent",
        same("robustness", data="noise")),
    Row("rank 10, transformed cell by cell", "50 % at random", "300 x 200",
        "percent", (("table1", "50 %"), ("synthetic", "50 %"))),
    Row("made by a network with 50 units", "50 % at random", "300 x 200", "percent",
        same("robustness", data="dense network")),
]  # fmt: skip
METRICS = {
    "nmae": ("NMAE", "{:.4f}"),
    "rmse": ("RMSE", "{:.3f}"),
    "nrmse": ("NRMSE", "{:.3f}"),
    "percent": ("% of the energy lost", "{:.2f}"),
    "psnr": ("PSNR, dB", "{:.1f}"),
    "aupr": ("AUPR", "{:.3f}"),
}
MORE_IS_BETTER = {"psnr", "aupr"}


def records() -> dict[tuple[str, str], dict[str, dict[int, dict[str, Any]]]]:
    """(part, data) -> method -> seed -> record."""
    found: dict = {}
    for name in ("low-rank", "networks"):
        for key, record in json.loads((RECORDS / f"{name}.json").read_text()).items():
            part, rest = key.split("/", 1)
            data, method, seed = rest.rsplit("/", 2)
            methods = found.setdefault((part, data), {})
            methods.setdefault(method, {})[int(seed)] = record
    for case, record in json.loads((RECORDS / "air-table1.json").read_text()).items():
        seconds = record.pop("seconds")
        methods = {name: {0: {"nmae": error}} for name, error in record.items()}
        methods["AIR"][0]["seconds"] = seconds
        found["air", case] = methods
    for case, record in json.loads((RECORDS / "air-nonlocal.json").read_text()).items():
        found["nonlocal", case] = {"Nonlocal": {0: record}}
    return found


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def decisions() -> str:
    """The best methods by kind of data, as Markdown."""
    found = records()
    lines = [
        "| data | missing | measure | three best methods, best first | command |",
        "|---|---|---|---|---|",
    ]
    for row in ROWS:
        title, form = METRICS[row.metric]
        parts = [found[source] for source in row.sources if source in found]
        # Records that are combined are compared on the masks that all of them have.
        shared = set.intersection(
            *({seed for runs in part.values() for seed in runs} for part in parts)
        )
        scores: dict[str, float] = {}
        seconds: dict[str, float] = {}
        for name, runs in (item for part in parts for item in part.items()):
            values = [r[row.metric] for s, r in runs.items() if s in shared]
            if name in CALLS and values and name not in scores:
                scores[name] = mean(values)
                times = [r["seconds"] for r in runs.values() if "seconds" in r]
                if times:
                    seconds[name] = mean(times)
        sign = -1 if row.metric in MORE_IS_BETTER else 1
        best = sorted(scores, key=lambda name: (sign * scores[name], name))[:3]
        shown = [
            f"`{CALLS[name]}` {form.format(scores[name])}"
            + (f" ({duration(seconds[name])})" if name in seconds else "")
            for name in best
        ]
        commands = [
            f"`{COMMANDS[source[0]]}`" for source in row.sources if source in found
        ]
        data = f"{row.kind}, {row.size}"
        cells = [data, row.missing, title, "<br>".join(shown), "<br>".join(commands)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def geometric(values: list[float]) -> float:
    return math.exp(mean(map(math.log, values)))


def alternatives() -> str:
    """The README's comparison with other packages: the rows that are measured."""
    stored = {
        name: json.loads((RECORDS / f"{name}.json").read_text())
        for name in ("auto", "low-rank", "pictures", "speed-air", "speed-spark")
    }
    lines = []
    tables = ["auto", "KNNImputer, 5", "IterativeImputer"]
    cases = sorted({key.rsplit("/", 2)[0] for key in stored["auto"]})
    for title in ("error on tables", "in file order"):
        runs = [
            [stored["auto"].get(f"{case}/{name}/0", {}) for name in tables]
            for case in cases
            if re.search("/(MCAR|MAR)", case)
            and ("file order" in case) == (title == "in file order")
        ]
        runs = [run for run in runs if all("rmse" in record for record in run)]
        error = [geometric([r[k]["rmse"] / r[2]["rmse"] for r in runs]) for k in (0, 1)]
        time = [mean(r[k]["seconds"] for r in runs) for k in (0, 1, 2)]
        lines += [
            f"| {title} ({len(runs)} cases), relative | {error[0]:.2f} |"
            f" {error[1]:.2f} | 1 | - | - |",
            "| seconds | " + " | ".join(f"{t:.2g}" for t in time) + " | - | - |",
        ]
    color: dict[str, list[dict[str, float]]] = {}
    for key, record in stored["pictures"].items():
        if key.startswith("color/"):
            color.setdefault(key.split("/")[2], []).append(record)
    ours, theirs = color["Nonlocal"], color["Biharmonic"]
    quality = [f"{mean(r['psnr'] for r in some):.1f} dB" for some in (ours, theirs)]
    time = [mean(r["seconds"] for r in some) for some in (ours, theirs)]
    lines += [
        f"| PSNR of color pictures ({len(ours)} cases) | {quality[0]} | - | - |"
        f" {quality[1]} | - |",
        f"| seconds | {time[0]:.2g} | - | - | {time[1]:.2g} | - |",
    ]
    films = [
        stored["low-rank"][f"ratings/1m, 90/10/{name}/0"]["rmse"]
        for name in ("Factorization", "Bayesian, implicit")
    ]
    als = stored["speed-spark"]["1m"]
    time = [als[name]["seconds"] for name in ("ours", "Spark")]
    lines += [
        f"| RMSE of MovieLens-1M | {films[0]:.3f}; {films[1]:.3f} Bayesian | - | - | -"
        f" | {als['Spark']['rmse']:.3f} |",
        f"| seconds of ten sweeps | {time[0]:.2g} | - | - | - | {time[1]:.2g} |",
    ]
    near = stored["speed-air"]["neighbours"]["seconds"]
    lines += [
        f"| seconds for 10 000 x 50 by neighbors | {near['KNNCompleter']:.2g} |"
        f" {near['KNNImputer']:.2g} | - | - | - |"
    ]
    return "\n".join(lines) + "\n"


# What the benchmarks compare with: other programs, and products that any program needs.
OTHERS = (
    "cmfrec", "DataLoader", "GridSearchCV", "KNNImputer", "Spark", "implicit", "loop",
    "plain",
)  # fmt: skip
BOUNDS = ("products", "ten products")


# What commands need, by the names of their records.
ARGUMENTS = {
    "scale": " PART FOLDER",
    "spark": " PYTHON FOLDER",
}


def told(slower: str, faster: str, ratio: float) -> str:
    """Say a ratio of the times of two programs in words, and mark losses."""
    if ratio < 1:
        slower, faster, ratio = faster, slower, 1 / ratio
    if faster in BOUNDS:
        return (
            f"{slower} takes {ratio:.3g} times the time of {faster}, the least needed"
        )
    said = f"{faster} is **{ratio:.3g} times as fast** as {slower}"
    return said + ": a **loss**" * (faster.split(",")[0] in OTHERS)


def ratios(tree: Any, path: tuple[str, ...], hardware: str) -> Iterator[list[str]]:
    """Every entry that is a ratio of two times."""
    if not isinstance(tree, dict):
        return
    hardware = tree.get("hardware", hardware)
    for key, value in tree.items():
        if slower := re.fullmatch("times as fast as (.*)", key):
            for name, ratio in value.items():
                if name != slower[1]:
                    yield [", ".join(path), told(slower[1], name, ratio), hardware]
        elif re.search(r"\S / \S", key) and isinstance(value, float):
            names = re.sub(r"^\(\w\) ", "", key).split(" / ")
            yield [", ".join(path), told(*names, value), hardware]
        else:
            yield from ratios(value, (*path, key), hardware)


def commit(path: Path) -> str:
    """The commits of a record's results, and whether their code has changed since."""
    found = [
        f"`{made}`{', stale' * stale}" for _, made, stale in commits(path.stem) if made
    ]
    return "; ".join(found) or "-"


def speed() -> str:
    """All ratios of the speed records, as Markdown."""
    lines = []
    for path in sorted(RECORDS.glob("speed-*.json")):
        if path.stem == "speed-busy":  # has tables of its own
            continue
        name = path.stem.removeprefix("speed-")
        module = f"benchmarks.speed.{name.replace('-', '_')}"
        tree = json.loads(path.read_text())
        rows = list(ratios(tree, (), "-"))
        if not rows:
            continue
        lines += [
            f"### {name}",
            "",
            f"`python -m {module}{ARGUMENTS.get(name, '')}`, recorded in "
            f"[{path.name}](reproduction/records/{path.name}) by commit "
            f"{commit(path)}.",
            "",
            "| benchmark | result | hardware |",
            "|---|---|---|",
        ]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
        lines += [""]
    return "\n".join(lines)


def busy() -> str:
    """Fits and steps beside busy processes, as Markdown."""
    path = RECORDS / "speed-busy.json"
    record = json.loads(path.read_text())
    beside = [f"{count} neighbors" for count in (0, 1, 2)]
    fits = [
        "| fit of a 240 x 240 picture | seconds alone | beside one | beside two"
        " | all threads: alone | beside one | beside two |",
        "|---" * 7 + "|",
    ]
    steps = ["| step | alone | beside one | beside two |", "|---" * 4 + "|"]
    for key, found in record.items():
        kind, _, name = key.partition(", ")
        if kind == "fit":
            walls = [
                found[k][f"{how} threads"]["wall"]
                for how in ("chosen", "all")
                for k in beside
            ]
            times = [
                f"{walls[0]:.2g}",
                *(f"{wall / walls[0]:.2f}" for wall in walls[1:]),
            ]
            fits += [f"| `{name}` | " + " | ".join(times) + " |"]
        if kind == "step":
            ratios = [f"{found[k]['all threads / one thread']:.2f}" for k in beside]
            steps += [f"| {name} | " + " | ".join(ratios) + " |"]
    one, *more = [f"{record['search'][k]['n_jobs=2 / n_jobs=1']:.2f}" for k in beside]
    lines = [
        "Seconds of a fit with the chosen threads on an idle machine; the other",
        "columns are multiples of them. Some fits have few iterations.",
        "",
        *fits,
        "",
        "The time of a step with all threads, divided by the time with one:",
        "",
        *steps,
        "",
        f"`GridSearchCV(n_jobs=2)` took {one} of the time of `n_jobs=1` alone, and",
        f"{more[0]} and {more[1]} of it beside one and two busy processes.",
        "",
        f"`python -m benchmarks.speed.busy`, {record['hardware']}, recorded in",
        f"[{path.name}](reproduction/records/{path.name}) by commit {commit(path)}.",
    ]
    return "\n".join(lines) + "\n"


def spark() -> str:
    """Spark's ALS and ours, as Markdown."""
    record = json.loads((RECORDS / "speed-spark.json").read_text())
    titles = {"1m": "MovieLens-1M", "1e7": "$10^7$ synthetic ratings"}
    lines = [
        "| ratings | rank, weight, sweeps | program | seconds | RMSE, held out |",
        "|---|---|---|---|---|",
    ]
    for data, found in record.items():
        settings = ", ".join(map(str, found["settings"]))
        lines += [
            f"| {titles.get(data, data)} | {settings} | {name} |"
            f" {found[name]['seconds']:.3g} | {found[name]['rmse']:.4f} |"
            for name in ("Spark", "ours, same model", "ours")
        ]
    hardware = sorted({found["hardware"] for found in record.values()})
    return "\n".join(lines) + f"\n\n{'; '.join(hardware)}.\n"


def workers() -> str:
    """Fits in one process and on workers, as Markdown."""
    path = RECORDS / "speed-scale.json"
    record = json.loads(path.read_text()).get("workers", {})
    hardware = record.pop("hardware", "")
    lines = [
        "| ratings | | seconds | processor seconds of each worker |"
        " of the client's process |",
        "|---|---|---|---|---|",
    ]
    for size, found in record.items():
        for name, run in found.items():
            if not isinstance(run, dict):
                continue
            wall, own = run["seconds"]["fit"]
            each = ", ".join(f"{s:.3g}" for s in run.get("worker processor s", []))
            lines += [f"| {size} | {name} | {wall:.3g} | {each or '-'} | {own:.3g} |"]
    return "\n".join(lines) + f"\n\n{hardware}.\n"


def batches() -> str:
    """Steps of single fits and of members of a batch, as Markdown."""
    steps = json.loads((RECORDS / "speed-search.json").read_text())["small"][
        "microseconds of a step"
    ]
    shapes = list(steps["SoftImputeCompleter"])
    lines = ["| | " + " | ".join(shapes) + " |", "|---" * (len(shapes) + 1) + "|"]
    for name, found in steps.items():
        cells = [", ".join(f"{x:.3g}" for x in found[k].values()) for k in shapes]
        lines += [f"| `{name}` | " + " | ".join(cells) + " |"]
    return "\n".join(lines) + "\n"


def flat(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """The leaves of nested results, by their paths."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from flat(value, (*path, key))
    elif isinstance(tree, float):
        yield ", ".join(path), f"{tree:.3g}" if math.isfinite(tree) else str(tree)
    else:
        yield ", ".join(path), str(tree)


def device() -> str:
    """The section about the CUDA benchmark, if there are results of it."""
    path = RECORDS / "gpu.json"
    if not path.exists():
        return ""
    lines = [
        "## On a CUDA device",
        "",
        "`python -m benchmarks.speed.gpu`, recorded in "
        f"[gpu.json](reproduction/records/gpu.json) by commit {commit(path)}.",
        "",
        "| quantity | result |",
        "|---|---|",
    ]
    lines += [f"| {k} | {v} |" for k, v in flat(json.loads(path.read_text()))]
    return "\n".join(lines) + "\n"


def panel() -> str:
    """Effects of policies and errors of placebos, as Markdown."""
    record = json.loads((RECORDS / "panel.json").read_text())
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for key, entry in record.items():
        name, method, _ = key.split("/")
        if "rmse" in entry:
            found.setdefault(method, {})[name] = entry
    names = ("prop99", "germany", "basque")
    lines = [
        "| method | ATT | RMSE | seconds | RMSE, Germany | RMSE, Basque |",
        "|---" * 6 + "|",
    ]
    for method, panels in sorted(found.items(), key=lambda m: m[1]["prop99"]["rmse"]):
        own = panels["prop99"]
        errors = [panels[name]["rmse"] for name in names]
        shown = [f"{e:.0f}" if e >= 1000 else f"{e:#.3g}" for e in errors]
        cells = [method, f"{own['att']:.1f}", shown[0], f"{own['seconds']:.1f}"]
        lines += ["| " + " | ".join([*cells, *shown[1:]]) + " |"]
    return "\n".join(lines) + "\n"


def series() -> str:
    """Errors of completed series, as Markdown."""
    record = json.loads((RECORDS / "series.json").read_text())
    kinds = ("cells", "days", "blocks")
    found: dict[str, dict[str, float]] = {}
    for key, entry in record.items():
        case, method, _ = key.split("/")
        name, kind = case.split(", ")
        if name == "Hangzhou" and "scaling" not in method:
            found.setdefault(method, {})[kind] = entry["rmse"]
    lines = ["| method | " + " | ".join(kinds) + " |", "|---" * 4 + "|"]
    for method, errors in sorted(found.items(), key=lambda item: item[1]["cells"]):
        shown = [f"{errors[kind]:.3g}" for kind in kinds]
        lines += [f"| {method} | " + " | ".join(shown) + " |"]
    return "\n".join(lines) + "\n"


def write(app) -> None:
    folder = Path(app.srcdir) / "generated"
    folder.mkdir(exist_ok=True)
    made = (
        decisions, speed, busy, device, spark, workers, panel, series, batches
    )  # fmt: skip
    tables = {function.__name__: function() for function in made}
    for name, text in tables.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app):
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    readme = RESULTS.parents[1] / "README.md"
    head, foot = "Spark's ALS |\n|---|---|---|---|---|---|\n", "| new rows |"
    before, rest = readme.read_text().split(head)
    readme.write_text(f"{before}{head}{alternatives()}{foot}{rest.split(foot)[1]}")
