"""The pages of the documentation to which the HTML of estimators links."""

from __future__ import annotations

import sys

DOCUMENTATION = "https://example.org/skmc/docs"


def page_of_class(self: object) -> str:
    """Address of an estimator's page in the API reference.

    The page is named by the shortest path from which the class can be imported. As a
    property ``_doc_link_template`` of an estimator, beside ``_doc_link_module``, it
    adds a link to scikit-learn's HTML representation. scikit-learn adds none to classes
    of other packages that are derived from ours.

    Returns
    -------
    str

    Examples
    --------
    >>> from skmc import KNNCompleter
    >>> KNNCompleter()._get_doc_link()
    'https://example.org/skmc/docs/api/skmc.KNNCompleter.html'
    """
    cls = type(self)
    package, *rooms = cls.__module__.split(".")[:2]
    at_the_top = cls.__name__ in getattr(sys.modules.get(package), "__all__", ())
    path = [package, *(() if at_the_top else rooms), cls.__name__]
    return f"{DOCUMENTATION}/api/{'.'.join(path)}.html"
