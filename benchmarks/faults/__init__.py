"""What completers survive: ``python -m benchmarks.faults``."""
