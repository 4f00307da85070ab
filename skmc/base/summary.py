"""A summary of the fit in the HTML of estimators."""

from __future__ import annotations

import html
from numbers import Number
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

# Attributes that the summary shows in its own way, or scikit-learn shows.
SHOWN = ("n_features_in_", "n_iter_", "status_")

TABLE = """
<div class="estimator-table">
  <details open>
    <summary>Fit</summary>
    <table class="parameters-table"><tbody>{rows}</tbody></table>
  </details>
</div>
"""
ROW = '<tr class="default"><td class="param">{}</td><td class="value">{}</td></tr>'


def fit_summary(self: Any) -> dict[str, str]:
    """Summarize the fit, as a method of an estimator.

    Parameters
    ----------
    self : estimator
        A fitted estimator.

    Returns
    -------
    dict of str to str
        The rows of the summary, not escaped for HTML.
    """
    own = vars(self)
    found = {}
    if (shape := own.get("_shape")) is not None:
        n_rows, n_cols = shape
        share = own["_n_observed"] / (n_rows * n_cols)
        found["matrix"] = f"{n_rows} x {n_cols}, {100 * share:.3g} % observed"
    elif "matrix_" in own:
        found["matrix"] = "{} x {}".format(*own["matrix_"].shape)
    if "status_" in own:
        found["status"] = own["status_"]
        found["iterations"] = str(own["n_iter_"])
    if (seconds := own.get("_seconds")) is not None:
        found["seconds"] = f"{seconds:.3g}"
    found |= {
        name.rstrip("_"): _short(value)
        for name, value in own.items()
        if _is_public(name) and name not in SHOWN and isinstance(value, str | Number)
    }
    history = own.get("history_", {})
    if len(residual := history.get("residual", ())):
        found["residual"] = _short(float(residual[-1]))
    if len(validation := history.get("validation", ())):
        found["validation RMSE (scaled)"] = _short(float(validation.min()))
    elif "path_" in own:
        found["validation RMSE (scaled)"] = _short(float(own["path_"]["error"].min()))
    return found


def fit_html(self: Any, doc_link: str = "") -> _FitHTML:
    """Make the tables of the fit: the summary and scikit-learn's attributes.

    scikit-learn evaluates all properties, some of which compute dense matrices. The
    table therefore shows stored attributes only. As ``_get_fitted_attr_html`` of an
    estimator, this function adds the summary to its HTML, also in diagrams of
    pipelines.

    Parameters
    ----------
    self : estimator
        A fitted estimator with the method ``_fit_summary``.
    doc_link : str, default=""
        Ignored.

    Returns
    -------
    object
        Has the methods that scikit-learn calls.
    """
    bare = BaseEstimator()
    vars(bare).update({k: v for k, v in vars(self).items() if _is_public(k)})
    table = bare._get_fitted_attr_html()._repr_html_inner()
    return _FitHTML(self._fit_summary(), table)


class _FitHTML:
    """A table with the methods that scikit-learn calls."""

    def __init__(self, summary: dict[str, str], attributes: str):
        self.summary, self.attributes = summary, attributes

    def __len__(self) -> int:
        return len(self.summary) + 1

    def _repr_html_inner(self) -> str:
        rows = "".join(
            ROW.format(html.escape(name), html.escape(value))
            for name, value in self.summary.items()
        )
        return TABLE.format(rows=rows) + self.attributes


def _is_public(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
