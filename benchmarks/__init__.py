"""Benchmarks: what takes minutes or compares speed; see README.md."""
