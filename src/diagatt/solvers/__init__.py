"""Solvers: fit the parameters of an attention module to a problem."""
