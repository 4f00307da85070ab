"""Completers: estimators that fill the missing cells of a matrix.

A class ``...Completer`` in a file of this folder is one of them, without a list.
"""

from skmc.completers._discovery import (
    advice_of,
    completer_classes,
    methods,
    modules,
    name_of,
    title_of,
)
from skmc.completers.costs import Cost, Size, Variant

TYPE_CHECKING = False
# Type checkers do not look into folders; nothing else reads these lines.
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
else:
    _MODULES = {**modules(), "candidates_for": "skmc.completers.auto"}
    __all__ = [*_MODULES, "Cost", "Variant"]

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _MODULES:
            raise AttributeError(f"module 'skmc.completers' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return found
