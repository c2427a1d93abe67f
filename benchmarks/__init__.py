"""Measurements with bounds: ``python -m benchmarks.resize`` and its neighbors."""
