"""Completers: estimators that fill the missing cells of a matrix."""

import difflib
import re
from importlib import import_module

TYPE_CHECKING = False
# Type checkers read these imports, and nothing else does: they take seconds.
if TYPE_CHECKING:
    from skmc.completers.air import AIRCompleter as AIRCompleter
    from skmc.completers.auto import AutoCompleter as AutoCompleter
    from skmc.completers.auto import candidates_for
    from skmc.completers.autoencoder import AutoencoderCompleter as AutoencoderCompleter
    from skmc.completers.bayesian import (
        BayesianFactorizationCompleter as BayesianFactorizationCompleter,
    )
    from skmc.completers.bibranch import BiBNNCompleter as BiBNNCompleter
    from skmc.completers.biharmonic import BiharmonicCompleter as BiharmonicCompleter
    from skmc.completers.chained import ChainedCompleter as ChainedCompleter
    from skmc.completers.dmf import DMFCompleter as DMFCompleter
    from skmc.completers.factorization import (
        FactorizationCompleter as FactorizationCompleter,
    )
    from skmc.completers.gaussian import GaussianCompleter as GaussianCompleter
    from skmc.completers.gradual_nsr import GradualNSRCompleter as GradualNSRCompleter
    from skmc.completers.grouped import GroupedCompleter as GroupedCompleter
    from skmc.completers.ialm import IALMCompleter as IALMCompleter
    from skmc.completers.knn import KNNCompleter as KNNCompleter
    from skmc.completers.linked import (
        LinkedFactorizationCompleter as LinkedFactorizationCompleter,
    )
    from skmc.completers.logdet import LogDetCompleter as LogDetCompleter
    from skmc.completers.mean import MeanCompleter as MeanCompleter
    from skmc.completers.mixed import MixedCompleter as MixedCompleter
    from skmc.completers.ncarl import NCARLCompleter as NCARLCompleter
    from skmc.completers.nonlocal_groups import NonlocalCompleter as NonlocalCompleter
    from skmc.completers.nsr import NSRCompleter as NSRCompleter
    from skmc.completers.patch_cnn import PatchCNNCompleter as PatchCNNCompleter
    from skmc.completers.series import SeriesCompleter as SeriesCompleter
    from skmc.completers.snn import SNNCompleter as SNNCompleter
    from skmc.completers.soft_impute import SoftImputeCompleter as SoftImputeCompleter
    from skmc.completers.svd import SVDCompleter as SVDCompleter
    from skmc.completers.svt import SVTCompleter as SVTCompleter
    from skmc.completers.trees import TreesCompleter as TreesCompleter
    from skmc.completers.truncated import TNNRCompleter as TNNRCompleter

# The module of each completer, and what it is good for, sorted by name. A new one needs
# a line here and one above.
COMPLETERS = {
    "AIRCompleter": (
        "air",
        "pictures, drug-target matrices, grouped ratings, small tables",
    ),
    "AutoCompleter": (
        "auto",
        "when you do not know which method to use; the lowest errors on tables",
    ),
    "AutoencoderCompleter": (
        "autoencoder",
        "many rows that depend nonlinearly on a few factors",
    ),
    "BayesianFactorizationCompleter": (
        "bayesian",
        "ratings, when accuracy is worth the time; nothing to tune",
    ),
    "BiBNNCompleter": ("bibranch", "a neural-network baseline"),
    "BiharmonicCompleter": (
        "biharmonic",
        "pictures with scratches or scattered holes, in a second",
    ),
    "ChainedCompleter": (
        "chained",
        "draws of tables, whose variances and correlations are those of the data",
    ),
    "DMFCompleter": ("dmf", "matrices of low rank"),
    "FactorizationCompleter": ("factorization", "ratings, new users"),
    "GaussianCompleter": ("gaussian", "tables, in a second; how sure each cell is"),
    "GradualNSRCompleter": (
        "gradual_nsr",
        "the published form of NSRCompleter, for comparisons",
    ),
    "GroupedCompleter": ("grouped", ""),
    "IALMCompleter": ("ialm", "low rank without noise; nothing to tune"),
    "KNNCompleter": ("knn", "many similar rows"),
    "LinkedFactorizationCompleter": (
        "linked",
        "floors, ceilings, saturating sensors: link shows the learned function",
    ),
    "LogDetCompleter": (
        "logdet",
        "exact recovery from very few cells; says which cells are certain",
    ),
    "MeanCompleter": ("mean", "the baseline"),
    "MixedCompleter": ("mixed", ""),
    "NCARLCompleter": ("ncarl", "pictures with scattered holes, columns in groups"),
    "NSRCompleter": ("nsr", "columns that each follow a different nonlinear function"),
    "NonlocalCompleter": (
        "nonlocal_groups",
        "pictures in gray or color with any kind of hole, the most accurate on most",
    ),
    "PatchCNNCompleter": ("patch_cnn", "pictures, including large holes"),
    "SNNCompleter": (
        "snn",
        "low rank with or without noise, pictures; nothing to tune",
    ),
    "SVDCompleter": ("svd", "a quick low-rank baseline"),
    "SVTCompleter": (
        "svt",
        "low rank without noise, for large matrices of very low rank",
    ),
    "SeriesCompleter": ("series", ""),
    "SoftImputeCompleter": ("soft_impute", "noisy data, dense or sparse"),
    "TNNRCompleter": ("truncated", "pictures, matrices of low rank"),
    "TreesCompleter": (
        "trees",
        "tables whose columns depend on each other nonlinearly, new rows",
    ),
}
# Completers that work with another one.
OUTER = "GroupedCompleter", "MixedCompleter", "SeriesCompleter"

if not TYPE_CHECKING:
    __all__ = [*COMPLETERS, "candidates_for"]

    def __getattr__(name: str) -> object:
        if name not in COMPLETERS and name != "candidates_for":
            near = closest(name, __all__)
            hint = f"; did you mean {near!r}?" if near else ""
            raise AttributeError(
                f"module 'skmc.completers' has no attribute {name!r}{hint}"
            )
        module, _ = COMPLETERS.get(name, ("auto", ""))
        found = getattr(import_module(f"skmc.completers.{module}"), name)
        globals()[name] = found
        return found


def completer_classes() -> list[type]:
    """Import all completers."""
    return [
        getattr(import_module(f"skmc.completers.{module}"), name)
        for name, (module, _) in COMPLETERS.items()
    ]


def methods() -> list[str]:
    """List the classes that complete a matrix by themselves."""
    return [name for name in COMPLETERS if name not in OUTER]


def name_of(title: str) -> str:
    """Name a class: ``SoftImputeCompleter`` is ``soft-impute``."""
    stem = title.removesuffix("Completer")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", stem).lower()


def title_of(text: str) -> str:
    """Find the name of a class by that of the method."""
    plain = {_plain(title): title for title in methods()}
    if _plain(text) not in plain:
        near = closest(text, methods())
        hint = f"did you mean {name_of(near)!r}? " if near else ""
        raise ValueError(
            f"there is no method {text!r}; {hint}'skmc methods' lists them"
        )
    return plain[_plain(text)]


# Classes and functions of other packages, and the completer that does the same.
FOREIGN = {
    "ALS": "FactorizationCompleter",
    "AlternatingLeastSquares": "FactorizationCompleter",
    "GAIN": "AutoencoderCompleter",
    "ImputationKernel": "ChainedCompleter",
    "inpaint_biharmonic": "BiharmonicCompleter",
    "IterativeImputer": "ChainedCompleter",
    "IterativeSVD": "SVDCompleter",
    "KNN": "KNNCompleter",
    "KNNImputer": "KNNCompleter",
    "LightFM": "FactorizationCompleter",
    "MatrixFactorization": "FactorizationCompleter",
    "MCNNM": "SoftImputeCompleter",
    "MICE": "ChainedCompleter",
    "missForest": "TreesCompleter",
    "NuclearNormMinimization": "IALMCompleter",
    "SimpleFill": "MeanCompleter",
    "SimpleImputer": "MeanCompleter",
    "SoftImpute": "SoftImputeCompleter",
}


def closest(name: str, known: list[str]) -> str | None:
    """Find the known name that a wrong one is most similar to, or stands for."""
    plain = {_plain(other): other for other in known}
    ours = {_plain(other): own for other, own in FOREIGN.items() if own in known}
    if _plain(name) in ours:
        return ours[_plain(name)]
    whole = {other.lower(): other for other in known}
    for known_by, wrong, least in (
        (whole, name.lower(), 0.85),
        (plain, _plain(name), 0.6),
    ):
        if near := difflib.get_close_matches(wrong, known_by, 1, least):
            return known_by[near[0]]
    return None


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]", "", name.lower()).removesuffix("completer")
