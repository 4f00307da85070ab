"""``python -m benchmarks.reproduce NAME``; without a name it lists what there is.

Evaluation files are read from the folder in SKMC_DATA. Pages and pictures are written
to ``docs/reproduction/``, or to the folder in SKMC_REPRODUCTION, as by ``skmc reproduce
NAME``.
"""

from __future__ import annotations

import sys

from benchmarks.reproduce import air, differentiable, low_rank, networks, spectral

COMMANDS = {
    "air-table1": air.table1,
    "air-table2": air.table2,
    "air-figures": air.figures,
    "air-ablation": air.ablation,
    "low-rank": low_rank.run,  # and names of its parts
    "nsr-table1": networks.table1,  # and the number of seeds
    "nsr-table2": networks.table2,
    "nsr-table4": networks.table4,  # and 100k or 1m
    "nsr-table5": networks.table5,
    "snn-figures": spectral.figures,
    "networks": networks.run,  # and names of its parts, or page
    "ldminv-table1": differentiable.ldminv_table1,
    "ldminv-table2": differentiable.ldminv_table2,
    "dsvd-table3": differentiable.dsvd_table3,
    "differentiable": differentiable.write,  # the page alone
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(f"usage: python -m benchmarks.reproduce {'|'.join(COMMANDS)}")
    COMMANDS[sys.argv[1]](*sys.argv[2:])
