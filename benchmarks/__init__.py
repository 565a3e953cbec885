"""Benchmarks take minutes or compare speed; see README.md."""
