"""Tables of papers next to ours: ``python -m benchmarks.reproduce NAME``."""
