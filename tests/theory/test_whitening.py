"""Constructions refuse by condition and number, and suggest what works."""

from __future__ import annotations

import numpy as np
import pytest

from diagatt.theory import (
    Moments,
    SeparationError,
    informative_subspace,
    multi_head_separators,
    second_moment_separator,
    single_head_separator,
    single_head_subspace_separator,
)
from tests.theory.draws import blocks


def test_refusals_name_condition_number_and_head():
    rng = np.random.default_rng(0)
    background = Moments(np.zeros(6), np.eye(6))
    strong = Moments(np.zeros(6), 3 * np.eye(6))
    weak = Moments(np.zeros(6), np.diag([3.0, 3.0, 3.0, 3.0, 3.0, 0.5]))
    with pytest.raises(SeparationError, match=r"head 1: smallest eigenvalue -0\.5") as refusal:
        multi_head_separators([strong, weak], background)
    assert refusal.value.head == 1
    assert refusal.value.suggestion.shape == (6, 5)

    with pytest.raises(SeparationError, match="γ̄") as refusal:
        multi_head_separators([strong, strong], background)
    assert refusal.value.condition == "γ̄* < 1"
    assert refusal.value.value == pytest.approx(1.0)

    classes, base = blocks(rng, 2, 2)  # d = 4: the means leave one direction, d* = 2
    with pytest.raises(SeparationError, match="exceeds d_k = 1") as refusal:
        multi_head_separators(classes, base)
    assert refusal.value.condition == "d* ≤ d_k"

    with pytest.raises(SeparationError, match="rank Z = 2") as refusal:
        single_head_separator(Moments([1.0, 0.0], 2 * np.eye(2)), Moments([0.0, 1.0], np.eye(2)))
    assert refusal.value.condition == "rank(Z) < dimension"

    with pytest.raises(SeparationError, match="no subspace helps") as refusal:
        single_head_separator(background, strong)
    assert refusal.value.suggestion is None

    with pytest.raises(SeparationError, match="more classes than features"):
        multi_head_separators([Moments([0.0], [[2.0]])] * 2, Moments([0.0], [[1.0]]))


def test_refused_second_moments_suggest_a_subspace_that_works():
    active = Moments([3.0, 0.0, 0.0], np.eye(3))
    with pytest.raises(SeparationError) as refusal:
        second_moment_separator(active, np.diag([1.0, 1.0, 2.0]))
    assert refusal.value.condition == "Δ_M = M₁ − M̄₀ ≻ 0"
    found = second_moment_separator(
        active, np.diag([1.0, 1.0, 2.0]), basis=refusal.value.suggestion
    )
    assert found.gap == 1.0


def test_bad_input_is_refused_by_name():
    row = Moments(np.zeros(3), np.eye(3))
    with pytest.raises(ValueError, match="tau must be a positive number"):
        single_head_separator(Moments(np.zeros(3), 2 * np.eye(3)), row, tau=0.0)
    with pytest.raises(ValueError, match="dependent columns"):
        single_head_subspace_separator(row, row, np.ones((3, 2)))
    with pytest.raises(ValueError, match="rows of class 1 have 2 features, the background has 3"):
        multi_head_separators([row, Moments(np.zeros(2), np.eye(2))], row)
    with pytest.raises(ValueError, match="one class"):
        multi_head_separators([row], row)
    with pytest.raises(ValueError, match="not positive definite"):
        informative_subspace(np.eye(2), np.diag([1.0, -1.0]))


def test_results_are_frozen():
    found = single_head_separator(
        Moments(np.zeros(3), 2 * np.eye(3)), Moments(np.zeros(3), np.eye(3))
    )
    with pytest.raises(AttributeError):
        found.gap = 1.0
