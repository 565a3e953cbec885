"""MixMIL, attention-based mixed models, of the package mixmil.

The package asks for torch-scatter, which is compiled for many minutes; the two functions that it
uses are two lines of torch each.
"""

import sys
import types

import numpy as np
import torch


class MixMIL:
    """MixMIL, binomial, started from the mean model; 2000 epochs at 1e-3, as its defaults are."""

    name = "mixmil"
    tasks = ("binary",)
    needs = ("mixmil", "statsmodels", "tqdm")

    def __init__(self, seed):
        self.seed = seed

    def fit(self, X, y):
        _stand_in_for_scatter()
        from mixmil import MixMIL as Model

        torch.manual_seed(self.seed)
        bags = _tensors(X)
        F = torch.ones(len(y), 1)
        Y = torch.as_tensor(np.asarray(y), dtype=torch.float32)[:, None]
        self.model_ = Model.init_with_mean_model(bags, F, Y, likelihood="binomial", n_trials=1)
        self.model_.train(bags, F, Y, verbose=False)
        with torch.inference_mode():  # the model standardizes effects of bags: by training bags
            u = self._effects(bags)
            self.scaling_ = (u.mean(0), u.std(0))

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X):
        effect = self.model_.predict(_tensors(X), scaling=self.scaling_)
        p = torch.sigmoid(effect + self.model_.alpha.detach()[0]).numpy()[:, 0]
        return np.column_stack([1 - p, p])

    def locate(self, X):
        weights, _ = self.model_.get_weights(_tensors(X))
        return [int(w[:, 0].argmax()) for w in weights]

    def _effects(self, bags):
        beta_u, beta_z = self.model_.get_betas(predict=True)
        eta = beta_z / torch.sqrt((beta_z**2).mean(0, keepdim=True))
        return self.model_._calc_bag_emb_effect_scatter(beta_u, eta, bags)


def _tensors(X):
    return [torch.as_tensor(np.array(x), dtype=torch.float32) for x in X]


def _stand_in_for_scatter():
    """Offer `scatter_softmax` and `segment_add_csr` under the name torch_scatter."""
    if "torch_scatter" in sys.modules:
        return

    def scatter_softmax(values, index, dim=0):
        index = index.reshape(-1, *[1] * (values.ndim - 1)).expand_as(values)
        n = int(index.max()) + 1
        largest = values.new_full((n, *values.shape[1:]), -torch.inf)
        largest = largest.scatter_reduce(0, index, values, "amax")
        weights = (values - largest.gather(0, index)).exp()
        total = values.new_zeros((n, *values.shape[1:])).scatter_add(0, index, weights)
        return weights / total.gather(0, index)

    def segment_add_csr(values, pointer):
        lengths = pointer.diff()
        index = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        return values.new_zeros((len(lengths), *values.shape[1:])).index_add(0, index, values)

    module = types.ModuleType("torch_scatter")
    module.scatter_softmax, module.segment_add_csr = scatter_softmax, segment_add_csr
    sys.modules["torch_scatter"] = module
