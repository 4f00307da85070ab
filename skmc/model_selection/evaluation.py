"""The evaluation of the candidates of a search on its folds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import joblib
from joblib.parallel import (
    LokyBackend,
    MultiprocessingBackend,
    SequentialBackend,
    ThreadingBackend,
    get_active_backend,
)
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from skmc.compatibility import (
    BaseSearchCV,
    insert_error_scores,
    warn_or_raise_about_fit_failures,
)
from skmc.linalg import threads_shared_by
from skmc.model_selection.batch import BatchedFit
from skmc.model_selection.batch_fits import resume_batch, run_batch
from skmc.model_selection.folds import Folds, Task
from skmc.model_selection.grouping import batches_of, grouped, on_cpu

# Backends of joblib whose workers run on this machine.
LOCAL = (LokyBackend, MultiprocessingBackend, SequentialBackend, ThreadingBackend)

Contexts = dict[tuple[int, int], Any]  # callback contexts by the label of the task


class Evaluation:
    """Function that a search calls to evaluate candidates, possibly several times.

    Parameters
    ----------
    search : BaseSearchCV
        Search that calls it.
    folds : Folds
        Data and folds of the search.
    """

    def __init__(self, search: BaseSearchCV, folds: Folds):
        self.search, self.folds = search, folds
        self.params: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self.more: dict[str, list[Any]] = defaultdict(list)
        self.cv_results: dict[str, Any] = {}
        self.resumable: list[BatchedFit] = []

    def __call__(
        self,
        candidates: Iterable[dict[str, Any]],
        *,
        more_results: Mapping[str, list[Any]] | None = None,
        callback_ctx: Any = None,
        names: Sequence[int] | None = None,
        resources: Mapping[str, int] | None = None,
    ) -> dict[str, Any]:
        """Evaluate candidates, add them to ``cv_results``, and return it.

        With ``resources={"max_iter": 100}``, batched fits follow the schedule of the
        estimator's own ``max_iter`` and are scored at iteration 100. They are resumed
        when a later call has a candidate with the same name in ``names``; other fits
        start from scratch.
        """
        candidates, search = list(candidates), self.search
        names, n_splits = names or range(len(candidates)), search.n_splits_
        n_fits = len(candidates) * n_splits
        if search.verbose > 0:
            print(
                f"Fitting {n_splits} folds for each of {len(candidates)} candidates, "
                f"totalling {n_fits} fits"
            )
        tasks: list[Task] = []
        contexts: Contexts = {}
        for (name, params), split in product(
            zip(names, candidates, strict=True), range(n_splits)
        ):
            completer = clone(self.folds.estimator)
            completer.set_params(**clone(params, safe=False))
            if callback_ctx is not None:
                contexts[name, split] = callback_ctx.subcontext(
                    task_name="candidate-split-evaluation", task_id=len(tasks)
                )
            tasks.append(Task((name, split), params, completer))
        found = self._run(tasks, contexts, dict(resources or {}))
        results = [found[task.label] for task in tasks]
        if not results:
            raise ValueError(
                "No fits were performed: there are no candidates, or cv has no splits."
            )
        warn_or_raise_about_fit_failures(results, search.error_score)
        if callable(search.scoring):
            insert_error_scores(results, search.error_score)
        self.params += candidates
        self.results += results
        for key, values in (more_results or {}).items():
            self.more[key] += values
        self.cv_results = search._format_results(
            self.params, n_splits, self.results, self.more
        )
        return self.cv_results

    def _run(
        self, tasks: list[Task], contexts: Contexts, resources: dict[str, int]
    ) -> dict[tuple[int, int], dict[str, Any]]:
        """Return results by label."""
        search, data = self.search, {"X": self.folds.X, "y": self.folds.y}
        # Batches that will be resumed stay in the memory of this process.
        prefer = "threads" if resources else None
        backend, _ = get_active_backend(prefer=prefer)
        keep = bool(resources) and getattr(backend, "supports_sharedmem", False)
        workers = {"n_jobs": search.n_jobs, "pre_dispatch": search.pre_dispatch}
        batched, alone = self._jobs(tasks, resources, keep, type(backend) in LOCAL)
        together = [contexts[label] for label in contexts if label not in alone]
        for context in together:
            context.call_on_fit_task_begin(estimator=search, **data)
        # Fits on a CUDA device of this machine stay in this process.
        outcomes = Parallel(n_jobs=1)(job for here, job in batched if here)
        if sent := [job for here, job in batched if not here]:
            # Workers of other backends share the processors automatically.
            in_threads = joblib.effective_n_jobs(search.n_jobs) if keep else 1
            with threads_shared_by(in_threads):
                outcomes += Parallel(**workers, prefer=prefer)(sent)
        found = {k: v for outcome in outcomes for k, v in outcome.results.items()}
        if alone:  # even an empty call takes seconds in some backends (Ray)
            single = Parallel(**workers)(
                delayed(Folds.alone)(
                    self.folds, task, resources, search, contexts.get(label)
                )
                for label, task in alone.items()
            )
            found |= zip(alone, single, strict=True)
        for context in together:
            context.call_on_fit_task_end(estimator=search, **data)
        self.resumable = [batch for outcome in outcomes for batch in outcome.batches]
        return found

    def _jobs(
        self, tasks: list[Task], resources: dict[str, int], keep: bool, local: bool
    ) -> tuple[list[tuple[bool, Any]], dict[tuple[int, int], Task]]:
        """Return jobs for batches, and tasks to be fitted alone.

        Each job comes with a bool: whether it must run in this process.
        """
        folds, search = self.folds, self.search
        new = {task.label: task for task in tasks}
        jobs = []
        for batch in self.resumable:
            labels = [member.label for member in batch.members.values()]
            resumed = [new.pop(label) for label in labels if label in new]
            if resumed:
                job = delayed(resume_batch)(folds, resumed, batch, resources)
                jobs.append((local and not on_cpu(resumed[0]), job))
        groups, rest = grouped(new.values(), folds)
        n_workers = joblib.effective_n_jobs(search.n_jobs)
        for group in groups:
            here = local and not on_cpu(group[0])
            n_iter = min(resources.values(), default=group[0].completer.max_iter)
            workers = 1 if here else n_workers
            for part in batches_of(group, folds, workers, search.batch_size, keep):
                if len(part) == 1 and not keep:
                    rest += part
                    continue
                job = delayed(run_batch)(folds, part, n_iter, resources, keep)
                jobs.append((here, job))
        return jobs, {task.label: task for task in rest}
