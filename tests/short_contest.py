"""The default's contest with few contestants and short fits, for tests of what surrounds it."""

from functools import partial

from diagatt.solvers import Likelihood, auto
from diagatt.solvers.auto import contestants, many
from diagatt.solvers.likelihood import starts


def shorten_contests(monkeypatch):
    """Let one map, few contestants of each sort and a few steps of each fit compete.

    Every sort takes part: without attention, with features of samples, both readouts of attention,
    extreme rows, latent rows. Weights, types, names and invariances do not depend on how many of a
    sort there are, nor on how far a fit goes.
    """
    monkeypatch.setattr(auto, "LARGE_CONTEST", 0)
    monkeypatch.setattr(auto, "SAMPLE_FEATURES", (("size", "sum", "max"), ("min", "spread")))
    monkeypatch.setattr(auto, "distinct_maps", lambda *_: ["unit"])
    monkeypatch.setattr(many, "MOST_STEPS", 3)
    monkeypatch.setattr(many, "GLM_STEPS", 3)
    monkeypatch.setitem(contestants._UNIFORM, "affine", (1, 100))
    monkeypatch.setattr(contestants, "Likelihood", partial(Likelihood, max_iterations=5))
    monkeypatch.setattr(starts, "TRIAL_ITERATIONS", 2)
    monkeypatch.setattr(starts, "ROWS_FIRST", [0.0, 0.5])
