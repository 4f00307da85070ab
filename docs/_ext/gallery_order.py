"""The order of the examples, by topic; new ones come last."""

from __future__ import annotations

ORDER = [
    "complete_photo",
    "text_over_picture",
    "text_by_patches",
    "scratched_photo",
    "choose_lambda_path",
    "reuse_laplacians",
    "learned_graph",
    "grid_search_cells",
    "halving_search",
    "recommend_films",
    "more_than_memory",
    "syn_netflix",
    "ion_channels",
    "pipeline_table",
    "autoencoder_pipeline",
    "mixed_table",
    "passenger_list",
    "pooled_estimate",
    "gaussian_intervals",
    "broken_week",
    "state_policy",
    "stack_table",
    "hidden_link",
    "sense_picture",
    "backprop_svd",
    "deconvolution",
    "new_method",
]


def by_topic(filename: str) -> tuple[int, str]:
    name = filename.removeprefix("plot_").removesuffix(".py")
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)
