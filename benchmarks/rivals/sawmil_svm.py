"""Sparse-aware support vector machine of the package sawmil."""

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold


class SAwMIL:
    """sAwMIL of sawmil, linear kernel, C = 1, OSQP; probabilities by Platt's method on 3 folds."""

    name = "sawmil"
    tasks = ("binary",)
    needs = ("sawmil", "osqp")
    most_rows = 4000  # its dual problem has a dense matrix over all rows
    revision = 2

    def __init__(self, seed):
        self.seed = seed

    def fit(self, X, y):
        held_out = np.empty(len(y))
        folds = StratifiedKFold(3, shuffle=True, random_state=self.seed)
        for train, test in folds.split(np.zeros(len(y)), y):
            model = self._fitted(X[train], y[train])
            held_out[test] = model.decision_function(self._bags(X[test]))
        scale = LogisticRegression().fit(held_out[:, None], y)
        slope, intercept = float(scale.coef_[0, 0]), float(scale.intercept_[0])
        if slope <= 0:  # folds that say the opposite must not turn the order of decisions round
            share = np.mean(y)
            slope, intercept = 1e-3, np.log(share / (1 - share))
        self.slope_, self.intercept_ = slope, intercept
        self.model_ = self._fitted(X, y)

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X):
        decisions = self.model_.decision_function(self._bags(X))
        p = expit(self.intercept_ + self.slope_ * decisions)
        return np.column_stack([1 - p, p])

    def locate(self, X):
        return [int(np.argmax(self.model_.sil_.decision_function(sample))) for sample in X]

    def _fitted(self, X, y):
        from sawmil.kernels import Linear
        from sawmil.sawmil import sAwMIL
        from sawmil.smil import sMIL

        class WithOSQP(sAwMIL):
            """The package's default solver needs a licence, and its first stage takes no other."""

            def __fit_mil__(self, bags):
                names = ("C", "kernel", "normalizer", "p", "scale_C", "tol", "solver")
                self.smil_ = sMIL(**{name: getattr(self, name) for name in names}).fit(bags)

        model = WithOSQP(C=1.0, kernel=Linear(), sil_kernel=Linear(), solver="osqp")
        return model.fit(self._bags(X, y))

    @staticmethod
    def _bags(X, y=None):
        from sawmil.bag import Bag

        labels = np.zeros(len(X)) if y is None else y
        return [
            Bag(X=np.array(sample), y=float(label), intra_bag_mask=np.ones(len(sample)))
            for sample, label in zip(X, labels, strict=True)
        ]
