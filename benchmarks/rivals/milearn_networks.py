"""Networks of the package mikit-learn, which imports as milearn."""

import numpy as np


class Milearn:
    """Additive attention network of milearn, its defaults: layers 256, 128, 64, early stopping."""

    name = "milearn"
    tasks = ("binary", "regression")
    needs = ("milearn", "pytorch_lightning")

    def __init__(self, task, seed):
        self.task, self.seed = task, seed

    def fit(self, X, y):
        from milearn.network.classifier import AdditiveAttentionNetworkClassifier
        from milearn.network.regressor import AdditiveAttentionNetworkRegressor

        classifies = self.task == "binary"
        face = (
            AdditiveAttentionNetworkClassifier if classifies else AdditiveAttentionNetworkRegressor
        )
        y = np.asarray(y, dtype=np.float64)
        self.center_, self.scale_ = (0.0, 1.0) if classifies else (y.mean(), y.std())
        self.model_ = face(random_seed=self.seed)
        # The package keeps the last fifth of a shuffled set for stopping.
        self.model_.fit([np.array(x) for x in X], ((y - self.center_) / self.scale_).tolist())

    def predict(self, X):
        return self.model_.predict([np.array(x) for x in X]) * self.scale_ + self.center_

    def predict_proba(self, X):
        return self.predict(X)

    def locate(self, X):
        weights = self.model_.get_instance_weights([np.array(x) for x in X])
        return [int(np.argmax(w)) for w in weights]
