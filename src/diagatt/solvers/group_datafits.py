"""Weighted losses in the form that skglm's block coordinate descent asks for.

skglm compiles these classes with numba, hence the plain loops and the absence of types. Groups are
contiguous: group g is columns ``grp_ptr[g]:grp_ptr[g + 1]``, so that a group of an F-ordered design
is one block of memory. skglm's own group losses know no sample weights, and its logistic one gives
this solver Lipschitz constants of features where constants of groups are needed.

Import this module only where skglm is installed.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int32
from skglm.datafits.base import BaseDatafit


class WeightedQuadraticGroup(BaseDatafit):
    """½ Σ_i w_i (y_i − z_i)²."""

    def __init__(self, weights, lipschitz, grp_ptr, grp_indices):
        self.weights, self.lipschitz = weights, lipschitz
        self.grp_ptr, self.grp_indices = grp_ptr, grp_indices

    def get_spec(self):
        """Types of the attributes."""
        return (
            ("weights", float64[:]),
            ("lipschitz", float64[:]),
            ("grp_ptr", int32[:]),
            ("grp_indices", int32[:]),
        )

    def params_to_dict(self):
        """Arguments of the constructor."""
        return {
            "weights": self.weights,
            "lipschitz": self.lipschitz,
            "grp_ptr": self.grp_ptr,
            "grp_indices": self.grp_indices,
        }

    def get_lipschitz(self, X, y):
        """Lipschitz constant of each group's gradient; computed beforehand."""
        return self.lipschitz

    def value(self, y, w, Xw):
        """Loss at the predictor Xw."""
        return 0.5 * np.sum(self.weights * (y - Xw) ** 2)

    def gradient_g(self, X, y, w, Xw, g):
        """Gradient with respect to one group."""
        residual = self.weights * (Xw - y)
        return X.T[self.grp_ptr[g] : self.grp_ptr[g + 1]] @ residual

    def intercept_update_step(self, y, Xw):
        """What to subtract from the intercept: the weights sum to 1."""
        return np.sum(self.weights * (Xw - y))


class WeightedLogisticGroup(BaseDatafit):
    """Σ_i w_i log(1 + exp(−y_i z_i)), y in {−1, 1}."""

    def __init__(self, weights, lipschitz, grp_ptr, grp_indices):
        self.weights, self.lipschitz = weights, lipschitz
        self.grp_ptr, self.grp_indices = grp_ptr, grp_indices

    def get_spec(self):
        """Types of the attributes."""
        return (
            ("weights", float64[:]),
            ("lipschitz", float64[:]),
            ("grp_ptr", int32[:]),
            ("grp_indices", int32[:]),
        )

    def params_to_dict(self):
        """Arguments of the constructor."""
        return {
            "weights": self.weights,
            "lipschitz": self.lipschitz,
            "grp_ptr": self.grp_ptr,
            "grp_indices": self.grp_indices,
        }

    def get_lipschitz(self, X, y):
        """Lipschitz constant of each group's gradient; computed beforehand, ¼ of least squares."""
        return self.lipschitz / 4

    def value(self, y, w, Xw):
        """Loss at the predictor Xw."""
        margin = y * Xw
        return np.sum(self.weights * (np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0)))

    def gradient_g(self, X, y, w, Xw, g):
        """Gradient with respect to one group."""
        slope = -self.weights * y / (1 + np.exp(y * Xw))
        return X.T[self.grp_ptr[g] : self.grp_ptr[g + 1]] @ slope

    def intercept_update_step(self, y, Xw):
        """What to subtract from the intercept: a gradient step, whose constant is ¼."""
        return 4 * np.sum(-self.weights * y / (1 + np.exp(y * Xw)))
