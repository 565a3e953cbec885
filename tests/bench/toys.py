"""Small sets and methods for tests of the bench."""

import numpy as np

from diagatt.bench import METHODS, Method


class Constant:
    """Predicts the training mean, whatever the bag."""

    name = "constant"

    def __init__(self, task):
        self.task = task

    def fit(self, X, y):
        self.classes, self.index = np.unique(y, return_inverse=True)
        self.mean = None if self.task != "regression" else y.mean()

    def predict(self, X):
        return np.full(len(X), self.mean)

    def predict_proba(self, X):
        return np.tile(np.bincount(self.index) / len(self.index), (len(X), 1))


class FirstRow(Constant):
    """Says that the first row decides."""

    name = "first"

    def locate(self, X):
        return np.zeros(len(X), dtype=int)


class Broken(Constant):
    """Raises."""

    name = "broken"

    def fit(self, X, y):
        raise RuntimeError("no luck today")


def register(*faces):
    for face in faces:
        METHODS[face.name] = Method(face.name, face, face.__doc__)
    return [face.name for face in faces]
