"""The fit of `AutoCompleter`: candidates, weights, and final fits of the members."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skmc import patterns
from skmc.base import Outcome, known_of_rows, warn_of_units, warn_user
from skmc.cells import Entries, Given
from skmc.completers._units import as_seen_by, standardized
from skmc.completers.auto._candidates import informed, selected
from skmc.completers.auto._cold import Cold
from skmc.completers.auto._fitted import FittedStack, Stack, reconstruction
from skmc.completers.auto._race import Race, Trial
from skmc.completers.auto._report import leaderboard, verdict
from skmc.completers.costs import Cost, Size
from skmc.linalg import seed_of
from skmc.loop import FitTasks, seconds_left, time_limit
from skmc.new_rows import RowIndex
from skmc.stacking import Spread

if TYPE_CHECKING:
    from skmc.completers.auto.completer import AutoCompleter

N_PARTS = 8
MAX_ROWS = 1_500  # largest number of rows on which candidates are compared
ROWS_TIMED = 500  # other rows, whose completion is timed
WRITING = 2  # times of writing and of looking up rows, relative to that of reading
REST = Cost(n_cols=5e-4, cells=8e-8)  # of reading, weights and weighted sum


class _Sample(NamedTuple):
    """Standardized rows, and the side information about rows and columns."""

    cells: np.ndarray
    known: Mapping[str, Any]


def fit_stack(completer: AutoCompleter, given: Given, tasks: FitTasks) -> Outcome:
    """Compute the fitted attributes of an `AutoCompleter`."""
    end = _end(completer, given)
    cells, priors, known = given.matrix, given.statistics, given.known
    cold = Cold.of(given)
    table, how = completer._represented_by(given), given.units(completer.scaling)
    if table is not None:  # its matrix is standardized
        how = None
    if completer.scaling == "auto" and how == "global":
        warn_of_units(completer, given.data)
    scaling = given.data.scaling_of("columns" if how == "columns" else None)
    whole = sample = _Sample(standardized(cells, scaling), known)
    beyond = None
    seed = seed_of(completer.random_state)
    if len(cells) > MAX_ROWS:
        rows = np.random.RandomState(seed % 2**32).permutation(len(cells))
        beyond = whole.cells[rows[MAX_ROWS : MAX_ROWS + ROWS_TIMED]]
        rows = np.sort(rows[:MAX_ROWS])
        sample = _Sample(whole.cells[rows], known_of_rows(known, rows))
    labels = patterns.parts_like_missing(sample.cells, N_PARTS, random_state=seed)
    entries = Entries.of_matrix(sample.cells)
    label = completer._together(labels, given)[entries.rows, entries.cols]
    n_observed = int(np.count_nonzero(~np.isnan(cells)))
    size = Size(len(cells), cells.shape[1], n_observed)
    seconds = end - time.perf_counter() - REST(size)
    race = Race(entries, label, scaling, size, seconds, sample.known, table, beyond)
    _run(race, completer, how, seed, completer._first_of_given(given), tasks)
    race.drop_slow()
    stacking = race.stack()
    members, weights, cold_weights = cold.weights(race, stacking)
    completers = {}
    with tasks.part("last fits", len(members)) as last:
        end = race.end - sum(t.seconds_of_predictions for t in members)
        for trial in members:
            completers[trial.name] = _last_fit(trial, race, end, whole, sample)
            last.done(trial.name)
    of_table = table, stacking.calibrations
    stack = Stack(completers, list(weights), scaling, *of_table)
    values = priors.fill(cells, stack.combined(cells, reconstruction))
    if cold.rows.any():
        own = Stack(completers, list(cold_weights), scaling, *of_table)
        values[cold.rows] = own.combined(cells, reconstruction)[cold.rows]
    found = [(t.name, w) for t, w in zip(race.members, stacking.common, strict=True)]
    attributes = {
        "weights_": {name: float(weight) for name, weight in found},
        "column_weights_": dict(zip(completers, weights, strict=True)),
        "completers_": completers,
        "verdict_": verdict(race, stacking),
        "_leaderboard": leaderboard(race, stacking),
    }
    fitted = FittedStack(
        statistics=priors,
        completion=values.astype(cells.dtype),
        index=RowIndex(cells),
        row_map=stack,
        whole_answer=bool(cold.rows.any()),
        spread=Spread.of(
            stacking.residuals,
            stacking.variances,
            race.donors(),
            race.held_out().cols,
            cells.shape[1],
        ),
    )
    return Outcome(fitted, attributes, interrupted=race.interrupted)


def _end(completer: AutoCompleter, given: Given) -> float:
    """The time at which the limit ends, less the time to write a table."""
    end = time.perf_counter() + (completer.max_time or np.inf) - given.seconds
    if given.source is not None:
        end -= WRITING * given.seconds
    return min(end, time.perf_counter() + seconds_left())


def _run(
    race: Race,
    completer: AutoCompleter,
    how: str | None,
    seed: int,
    first: np.ndarray,
    tasks: FitTasks,
) -> None:
    """Compare the candidates; raise an error if none of them could be fitted."""
    wanted, known = completer.candidates, race.known
    candidates = informed(selected(wanted, seed, completer.device), known)
    candidates = [candidate.scaled_by(how) for candidate in candidates]
    if known and not any(candidate.takes for candidate in candidates):
        warn_user(
            f"None of the candidates takes {' or '.join(known)}; add 'Bayesian' or "
            "'Factorization', or leave them out."
        )
    candidates = [c._replace(first_columns=first) for c in candidates]
    race.run(candidates, not isinstance(wanted, str), tasks)
    if not race.members:
        if race.interrupted:
            raise KeyboardInterrupt
        said = "; ".join(f"{t.name} {t.status}" for t in race.trials)
        raise ValueError(f"None of the candidates could be fitted: {said}.")


def _last_fit(
    trial: Trial, race: Race, end: float, whole: _Sample, sample: _Sample
) -> Any:
    """Fit the estimator to all cells, or to as many as there is time for."""
    parts = [(whole, trial.seconds_of_last_fit), (sample, trial.seconds_of_same_rows)]
    for part, seconds in parts:
        left = np.inf if trial.fitted is None else end - time.perf_counter()
        late = seconds > left + trial.seconds_of_predictions
        if late or (race.interrupted and trial.fitted is not None):
            continue
        with warnings.catch_warnings(), time_limit(left):
            warnings.simplefilter("ignore")  # the leaderboard counts them
            try:
                given = trial.candidate.arguments(part.known)
                estimator = trial.candidate.clone()
                cells = as_seen_by(estimator, part.cells, race.scaling)
                fitted = estimator.fit(cells, **given)
                if seconds_left() > 0 or trial.anytime or trial.fitted is None:
                    return fitted
            except KeyboardInterrupt:
                if trial.fitted is None:
                    raise
                race.interrupted = True
            except Exception:
                if trial.fitted is None:
                    raise
    return trial.fitted
