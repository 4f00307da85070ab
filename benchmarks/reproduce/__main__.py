"""``python -m benchmarks.reproduce NAME``; without a name it lists what there is.

Evaluation files are read from the folder in SKMC_DATA. Pages and pictures are written
to ``docs/reproduction/``, or to the folder in SKMC_REPRODUCTION, as by ``skmc reproduce
NAME``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from benchmarks.reproduce import (
    air,
    air_chosen,
    air_figures,
    air_page,
    differentiable,
    differentiable_page,
    leaderboards,
    low_rank,
    low_rank_page,
    networks,
    networks_page,
    pictures,
    pictures_page,
    side_information,
    spectral,
)
from benchmarks.shared.results import Results


def then_write(page: Any, *measures: Callable[..., None]) -> Callable:
    """A command that adds measurements to a page's records and writes the page."""

    def command(*arguments: str) -> None:
        results = Results(page.NAME)
        for measure in measures:
            measure(results, *arguments)
        page.write(results)

    return command


def recorded(
    name: str, measure: Callable[[Results], None], write: Callable[[Results], None]
) -> Callable[..., None]:
    """A command that adds to a record and writes its page; ``page`` writes it alone."""

    def command(*words: str) -> None:
        results = Results(name)
        if words != ("page",):
            measure(results)
        write(results)

    return command


COMMANDS = {
    "air-table1": recorded("air-table1", air.table1, air_page.table1),
    "air-table2": recorded("air-table2", air.table2, air_page.table2),
    "air-nonlocal": recorded("air-nonlocal", air.nonlocal_rows, air_page.nonlocal_rows),
    "air-chosen": then_write(air_chosen, air_chosen.run),  # and names of data
    "air-figures": air_figures.figures,
    "air-ablation": recorded("air-ablation", air.ablation, air_page.ablation),
    "leaderboards": then_write(leaderboards, leaderboards.run),  # and its parts
    "low-rank": then_write(low_rank_page, low_rank.run),  # and names of its parts
    "nsr-table1": then_write(networks_page, networks.table1),  # and number of seeds
    "nsr-table2": then_write(networks_page, networks.table2),
    "nsr-table4": then_write(networks_page, networks.table4),  # and 100k or 1m
    "nsr-table5": then_write(networks_page, networks.table5),
    "pictures": then_write(pictures_page, pictures.run),  # and color, gray, or masks
    "side-information": then_write(side_information, side_information.run),
    "snn-figures": recorded("spectral", spectral.figures, spectral.write),
    "networks-all": then_write(
        networks_page,
        networks.table1,
        networks.table2,
        networks.table4,
        networks.table5,
        networks.run,
    ),
    "networks": then_write(networks_page, networks.run),  # and its parts, or page
    "ldminv-table1": then_write(differentiable_page, differentiable.ldminv_table1),
    "ldminv-table2": then_write(differentiable_page, differentiable.ldminv_table2),
    "dsvd-table3": then_write(differentiable_page, differentiable.dsvd_table3),
    "differentiable-all": then_write(
        differentiable_page,
        differentiable.ldminv_table1,
        differentiable.ldminv_table2,
        differentiable.dsvd_table3,
    ),
    "differentiable": then_write(differentiable_page),  # the page alone
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(f"usage: python -m benchmarks.reproduce {'|'.join(COMMANDS)}")
    COMMANDS[sys.argv[1]](*sys.argv[2:])
