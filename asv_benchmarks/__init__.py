"""Benchmarks of two commits: ``asv continuous main HEAD``."""
