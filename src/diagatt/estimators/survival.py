"""Times to an event, with scikit-survival's conventions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from diagatt import coerce, parameters
from diagatt.attention.blend import Blend, with_mapped
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.estimators.containers import by_shard, from_sources
from diagatt.estimators.diagonal_base import _DiagAtt
from diagatt.estimators.response import with_known_shape
from diagatt.estimators.times import ReadsTimes, step_functions
from diagatt.families import Family, Times, get_family
from diagatt.families.cox import risk_of
from diagatt.families.risk_sets import TIES
from diagatt.lifetimes import read_times
from diagatt.parameters import Rule
from diagatt.segments import map_blocks, segment_sum
from diagatt.stores import RowStore


@dataclass(eq=False, repr=False)
class DiagAttSurvival(ReadsTimes, _DiagAtt):
    r"""Survival analysis by diagonalized attention: a few rows decide when an event happens.

    The predictor z is that of `DiagAttRegressor`. With ``family="cox"`` the hazard is
    :math:`λ_0(t) e^z`, fitted by the partial likelihood; otherwise :math:`\log T = z + σε` with an
    error of known distribution (accelerated failure time), fitted by the full likelihood.

    Parameters
    ----------
    family : {"auto", "cox", "weibull", "lognormal", "loglogistic"}
        "auto" means "cox". The other three also take interval-censored times.
    ties : {"efron", "breslow"}
        How Cox's partial likelihood counts events that happen at the same time. Solvers with latent
        rows (mixture, likelihood and "auto") always use Breslow's method.
    n_heads, solver, score_form, coupling, ridge, selection, warm_start, checkpoint, \
random_state, device, verbose, encoder, missing
        As in `DiagAttRegressor`.

    Attributes
    ----------
    unique_times_ : array
        Times at which survival functions are given, namely all distinct ends of observation.
    shape_ : array
        For "cox", the baseline, (2, m): event times, and Breslow's cumulative hazard at them. For
        the other families, σ.
    query_key_, value_, covariate_coef_, n_heads_, n_restarts_, history_, selection_
        As in `DiagAttRegressor`. For "cox", `value_` holds log hazard ratios.

    Examples
    --------
    >>> from diagatt import DiagAttSurvival, simulate
    >>> from diagatt.solvers import Likelihood
    >>> data = simulate.survival(300, p=5, d=4, mu=(3,), sigma2=(4,), censoring=0.3, seed=0)
    >>> model = DiagAttSurvival(solver=Likelihood(), random_state=0).fit(data.X, data.y)
    >>> model.predict(data.X[:3]).shape  # risk scores: larger ones mean earlier events
    (3,)
    >>> curve = model.predict_survival_function(data.X[:1])[0]
    >>> bool(curve(0.0) == 1.0 and curve(curve.x[-1]) < 1.0)
    True
    """

    _: KW_ONLY
    ties: str = "efron"

    rules: ClassVar[Mapping[str, Rule]] = {"ties": parameters.one_of(*TIES)}

    # ------------------------------------------------------------------ responses

    def _fitted_family(self) -> tuple[Family, int]:
        family = get_family("cox" if self.family == "auto" else self.family)
        if not isinstance(family, Times):
            raise ValueError(
                f"family {self.family!r} is not one of times to an event: choose 'cox', 'weibull', "
                "'lognormal' or 'loglogistic'."
            )
        return with_known_shape(family.with_ties(self.ties), self), 1

    def _stored_encoder(self, store: RowStore) -> Callable[[np.ndarray], np.ndarray]:
        if not store.has_times:
            raise ValueError(
                f"{store.path} holds no times to an event: write the store with y of time and "
                "event, or fit DiagAttRegressor or DiagAttClassifier to it."
            )
        weights = store.weights()
        self._read_response(store.responses(), np.ones(len(store)) if weights is None else weights)
        return lambda y: read_times(y, len(y))

    # ------------------------------------------------------------------ predictions

    @from_sources
    def predict(self, X: Any, covariates: Any = None, offset: Any = None) -> np.ndarray:
        """Return risk scores, (n_samples,): larger ones mean earlier events.

        They are log hazard ratios z for "cox", and −z, minus the log of a typical time, otherwise.
        """
        z = torch.from_numpy(self._linear_predictor(X, covariates, offset))
        return risk_of(self._fitted_family()[0], z)[:, 0].numpy()

    @from_sources
    @by_shard
    @torch.no_grad()
    def predict_survival_function(
        self,
        X: Any,
        covariates: Any = None,
        offset: Any = None,
        return_array: bool = False,
        times: Any = None,
    ) -> np.ndarray:
        """Return P(T > t | X).

        Parameters
        ----------
        X : samples
        covariates : array of shape (n, q), optional
        offset : array of shape (n,), optional
        return_array : bool
            Return an array of shape (n, T) instead of n step functions.
        times : array of shape (T,), optional
            ``unique_times_`` by default.

        Returns
        -------
        array of n `StepFunction`, or of shape (n, T)
        """
        check_is_fitted(self)
        rows, module, values, offsets = self._packed(X)
        coerce.refuse_other_order(rows, covariates=covariates, offset=offset)
        at = self._times(times, return_array)
        grid, family = torch.as_tensor(at).to(self._dtype).double(), self._fitted_family()[0]
        given = [self._covariates(covariates, len(rows))]
        known = self._offset(offset, None, len(rows))
        given += [] if known is None else [known]

        def of_block(*block: Any, **prior: Any) -> torch.Tensor:
            return survival(module, family, grid, *block, **prior)  # type: ignore[arg-type]

        arrays = (torch.as_tensor(array).to(values) for array in given)
        prior = self._log_prior(rows)
        found = map_blocks(of_block, values, offsets, *arrays, log_prior=prior).cpu().numpy()
        return found if return_array else step_functions(at, found, before=1.0)

    @from_sources
    def predict_cumulative_hazard_function(
        self,
        X: Any,
        covariates: Any = None,
        offset: Any = None,
        return_array: bool = False,
        times: Any = None,
    ) -> np.ndarray:
        """Return −log P(T > t | X); parameters as in `predict_survival_function`."""
        check_is_fitted(self)
        at = self._times(times, return_array)
        curves = self.predict_survival_function(X, covariates, offset, True, at)
        hazard = -np.log(np.maximum(curves, 1e-300))
        return hazard if return_array else step_functions(at, hazard, before=0.0)

    def score(self, X: Any, y: Any, covariates: Any = None, offset: Any = None) -> float:
        """Return Harrell's concordance of the risk scores."""
        risk = self.predict(X, covariates, offset)
        return self._concordance(y, risk)


def survival(
    module: DiagonalAttention | Blend,
    family: Times,
    times: Tensor,
    values: Tensor,
    offsets: Tensor,
    covariates: Tensor | None = None,
    offset: Tensor | None = None,
    log_prior: Tensor | None = None,
) -> Tensor:
    """Return P(T > t) at all times, (n, T): means over rows and members where there are several.

    Parameters
    ----------
    times : tensor of shape (T,)
    values, offsets, covariates, offset
        Packed samples, as the module takes them.
    """
    if isinstance(module, Blend):
        parts = []
        chosen = [member for member in module.members_list if member.weight > 0]
        for member, mapped in with_mapped(chosen, values):
            Z = member.all_covariates(mapped, offsets, covariates, log_prior)
            given = (mapped, offsets, Z, offset, log_prior)
            parts.append(member.weight * survival(member.attention, family, times, *given))
        return torch.stack(parts).sum(dim=0)
    if module.readout == "pooled" or module.groups > 1:
        z = module(values, offsets, covariates, offset=offset, log_prior=log_prior)
        return family.log_survival(times[None], z).exp()
    log_p, z, places = module.assignments(values, offsets, covariates, offset, log_prior)
    each = family.log_survival(times[None], z).exp()  # (M, T)
    return segment_sum(log_p.double().exp()[:, None] * each, places)
