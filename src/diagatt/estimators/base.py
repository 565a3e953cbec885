"""What every estimator of samples shares: reading data, one path through `fit`, saving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator

from diagatt import attributes, coerce, names, parameters
from diagatt.arrays import InputError
from diagatt.covariates import parted
from diagatt.families import Family, check_response
from diagatt.persistence import SavedToFile
from diagatt.ragged import RaggedRows
from diagatt.solvers.glm import DivergedError
from diagatt.solvers.problem import Samples
from diagatt.user_warnings import warn

# Errors with which a fit ends if its numbers are too large or too small.
BREAKDOWNS = (ArithmeticError, np.linalg.LinAlgError, torch.linalg.LinAlgError)  # type: ignore[attr-defined]

# Words of the errors of NumPy and torch when an array does not fit into memory.
OUT_OF_MEMORY = ("Unable to allocate", "allocate memory", "out of memory")

# Largest offset of a log link: e to this power is still a number of single precision.
LARGEST_LOG = 80.0

# Standard deviation of features from which on training may not converge, and rows that decide it.
LARGEST_SPREAD, MOST_ROWS = 1e3, 65_536


class RowsEstimator(SavedToFile, BaseEstimator, ABC):
    """Base of estimators whose samples are matrices of rows.

    A 2-D array is n one-row samples, so that scikit-learn's whole test suite applies.
    """

    rules: ClassVar[Mapping[str, parameters.Rule]] = {
        "family": parameters.instance("the name of a family", str),
        "random_state": parameters.seed(),
        "device": parameters.device(),
        "verbose": parameters.boolean(),
    }
    fitted_rules: ClassVar[attributes.Rules] = {
        "n_features_in_": attributes.size(1),
        "one_row_samples_": parameters.boolean(),
        "feature_names_in_": attributes.names(),
        "covariate_names_in_": attributes.names(),
    }
    # Whether rows may have weights.
    _takes_row_weights: ClassVar[bool] = False
    family: str = "auto"
    device: str = "cpu"
    missing: str = "refuse"
    n_features_in_: int
    one_row_samples_: bool

    # ------------------------------------------------------------------ for subclasses

    @property
    def _depends_on_units(self) -> bool:
        """Whether a fit to the same rows in another unit is another fit."""
        return True

    # The next three are not abstract: a blend has no family, its members have theirs.

    def _read_response(self, y: Any, weights: np.ndarray) -> np.ndarray:
        """Return responses as numbers, (n,), as the classes of `diagatt.estimators.response` do."""
        raise NotImplementedError(f"{type(self).__name__} does not read responses.")

    def _fitted_family(self) -> tuple[Family, int]:
        """Return the family and the count of linear predictors, as those classes do."""
        raise NotImplementedError(f"{type(self).__name__} has no family.")

    def _linear_predictor(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return z of new samples, (n, K)."""
        raise NotImplementedError(f"{type(self).__name__} has no linear predictor.")

    def _check_rows(self, rows: RaggedRows) -> None:
        """Refuse samples that the parameters do not allow."""

    @abstractmethod
    def _fit_problem(self, problem: Any) -> None:
        """Solve the problem and set the fitted attributes."""

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        counts = {
            "feature_names_in_": self.n_features_in_,
            "covariate_names_in_": self._n_covariates(),
        }
        return {name: (count,) for name, count in counts.items()}

    def _n_covariates(self) -> int:
        """Return how many covariates the fit had; most methods take none."""
        return int(getattr(self, "n_covariates_", 0))

    # ------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to samples and their responses.

        Parameters
        ----------
        X : RaggedRows, list of (p_i, d) arrays, (n, p, d) array, or (n, d) array
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
        """
        return self._fit(X, y, sample_weight)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any = None, covariates: Any = None, **known: Any
    ) -> Self:
        """Check the parameters, read the data as a problem, solve it, and keep the result.

        All of this happens to a copy, so that a fit that fails leaves the estimator as it was.
        """
        parameters.check(self)
        X, covariates = parted(X, covariates)
        fitted = copy(self)
        problem = fitted._problem(X, y, sample_weight, covariates, **known)
        if self._depends_on_units and problem.in_memory is not None:
            warn_of_units(problem.in_memory.values, problem.n_samples)
        with self._explained_breakdown(problem):
            fitted._fit_problem(problem)
            attributes.refuse_nonfinite(fitted)
        fitted._keep_family()
        self.__dict__ = fitted.__dict__
        return self

    def _keep_family(self) -> None:
        """Keep the family that was fitted: another may be set afterwards, and is refused."""
        self._family_of_fit = self.family

    @contextmanager
    def _explained_breakdown(self, problem: Any) -> Iterator[None]:
        """Say what to do where numbers or the memory do not suffice for a fit."""
        try:
            yield
        except BREAKDOWNS as error:
            raise DivergedError(
                f"the fit of {type(self).__name__} broke down ({error}): rows, responses, "
                "covariates or weights are too large, too small or too much alike; scale them."
            ) from error
        except (MemoryError, RuntimeError) as error:
            if not any(words in str(error) for words in OUT_OF_MEMORY):
                raise
            takes_encoder = "encoder" in self.get_params(deep=False)
            way = ", or encode them, for example with encoder=PCA(64)" if takes_encoder else ""
            raise InputError(
                f"the fit of {type(self).__name__} to {problem.n_features} features needs more "
                f"memory than there is: choose fewer features{way}."
            ) from error

    def _problem(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        covariates: Any,
        *,
        groups: Any = None,
        offset: Any = None,
        exposure: Any = None,
        row_labels: Any = None,
    ) -> Any:
        """Read the data and return them as a problem, without samples of weight 0."""
        rows = self._validate_rows(X, reset=True)
        named = {"y": y, "sample_weight": sample_weight, "covariates": covariates}
        named |= {"groups": groups, "offset": offset, "exposure": exposure}
        coerce.refuse_other_order(rows, **named, row_labels=row_labels)
        weights = coerce.weights(sample_weight, len(rows))
        response = self._read_response(y, weights)
        self._check_rows(rows)
        coerce.refuse_unusable(rows)  # an encoder may have made them so
        problem = self._tensors(
            rows, response, weights, self._note_covariates(covariates, len(rows))
        )
        if groups is not None:
            problem = replace(problem, groups=torch.as_tensor(coerce.groups(groups, len(rows))))
        known = self._offset(offset, exposure, len(rows))
        if known is not None:
            problem = replace(problem, offset=torch.as_tensor(known).to(problem.values))
        if row_labels is not None:
            if rows.n_rows != RaggedRows.coerce(X).n_rows:
                raise InputError(
                    "row_labels count rows that have no observed entry: drop these rows, and count "
                    "the others."
                )
            known = coerce.known_rows(row_labels, rows.offsets)
            problem = replace(problem, log_known=torch.as_tensor(known).to(problem.values))
        check_response(problem.family, problem.y)
        counted = torch.nonzero(problem.weights)[:, 0]
        return problem if len(counted) == len(rows) else problem.take(counted)

    def _tensors(
        self, rows: RaggedRows, y: np.ndarray, weights: np.ndarray, covariates: np.ndarray
    ) -> Samples:
        family, n_outputs = self._fitted_family()
        values, offsets = rows.to_torch(self.device)
        response, w, Z = (torch.as_tensor(a).to(values) for a in (y, weights, covariates))
        prior = None if rows.log_prior is None else torch.as_tensor(rows.log_prior).to(values)
        for name, given, own in (("y", response, y), ("covariates", Z, covariates)):
            # The given numbers were finite, except that the time of an event may be infinite.
            if not bool((torch.isfinite(given) | torch.as_tensor(np.isinf(own))).all()):
                raise InputError(
                    f"{name} holds numbers that are too large for {values.dtype}: scale them, or "
                    "pass float64 rows."
                )
            counts = torch.as_tensor(np.isfinite(own) & (own != 0))
            if bool(counts.any()) and not bool(given.cpu()[counts].any()):
                raise InputError(
                    f"{name} holds numbers that are too small for {values.dtype}: scale them, or "
                    "pass float64 rows."
                )
        missing = getattr(rows, "missing", None)  # of `CompletedRows`
        missing = None if missing is None else torch.as_tensor(missing, device=values.device)
        optional = {"log_prior": prior, "missing": missing}
        return Samples(family, values, offsets, response, w, Z, n_outputs, **optional)

    def _validate_rows(self, X: Any, *, reset: bool) -> RaggedRows:
        """Pack and check the samples; `reset` in fit, comparison with the fit otherwise."""
        if not reset:  # they may have been set after the fit, such as a device
            parameters.check(self)
        fit_to = self.__dict__.get("_family_of_fit", self.family)
        if not reset and fit_to != self.family:
            raise ValueError(
                f"family is {self.family!r}, but the fit had {fit_to!r}: set it back, or fit again."
            )
        if self.missing == "marginalize":
            X = coerce.unmasked(X)
        rows, flat = RaggedRows.coerce(X), coerce.is_flat(X)
        if rows.row_weight is not None and not self._takes_row_weights:
            raise ValueError(
                f"{type(self).__name__} does not take weights of rows: pass "
                "X.with_row_weight(None), or fit DiagAttRegressor or DiagAttClassifier."
            )
        if flat and not reset and not self.one_row_samples_:
            raise ValueError(
                f"X is one 2-D array of shape {np.shape(X)}, but {type(self).__name__} was "
                "fitted on samples of several rows. For a single sample pass a list: [X]; "
                "for one-row samples pass RaggedRows.from_rows(X)."
            )
        if reset:
            self._note_features(rows, flat)
        else:
            rows = self._as_in_fit(rows)
        return self._encoded(self._usable(rows, reset=reset), reset=reset)

    def _usable(self, rows: RaggedRows, *, reset: bool) -> RaggedRows:
        """Return samples without NaN, infinity and entries that are too large: they are refused."""
        coerce.refuse_unusable(rows)
        return rows

    def _encoded(self, rows: RaggedRows, *, reset: bool) -> RaggedRows:
        """Return the rows that the model is fitted to: the same, unless it has an encoder."""
        return rows

    def _as_in_fit(self, rows: RaggedRows) -> RaggedRows:
        """Return new samples with the columns of the fit in its order, by name if possible."""
        wanted: Any = getattr(self, "feature_names_in_", None)
        found = rows.feature_names
        if (found is None or wanted is None) and rows.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {rows.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        place = names.match(found, wanted, "X", "X[list(model.feature_names_in_)]")
        if place is not None:
            return rows.with_features(wanted.tolist())
        return rows.with_names(wanted)

    def _note_features(self, rows: Any, flat: bool = False) -> None:
        """Remember the count and the names of features, and whether samples are one 2-D array."""
        found = getattr(rows, "feature_names", None)
        before = getattr(self, "feature_names_in_", found)
        if getattr(self, "warm_start", False) and before is not None and found != tuple(before):
            raise ValueError(
                "warm_start continues a fit of the same features: they were "
                f"{names.listed(before)}; set warm_start=False."
            )
        self.n_features_in_, self.one_row_samples_ = rows.n_features, flat
        self._note_names("feature_names_in_", found)

    def _note_covariates(self, given: Any, n_samples: int) -> np.ndarray:
        """Read the covariates of a fit, (n, q), and remember their names."""
        Z = coerce.covariates(given, n_samples)
        self._note_names("covariate_names_in_", names.names_of(given, "covariates"))
        return Z

    def _note_names(self, attribute: str, found: Any) -> None:
        self.__dict__.pop(attribute, None)
        if found is not None:
            setattr(self, attribute, np.array(found, dtype=object))

    def _covariates(self, given: Any, n_samples: int) -> np.ndarray:
        """Read the covariates of new samples, (n, q), in the order of the fit."""
        known = getattr(self, "covariate_names_in_", None)
        return coerce.covariates(given, n_samples, self._n_covariates(), known)

    def _offset(self, given: Any, exposure: Any, n_samples: int) -> np.ndarray | None:
        """Read the known part of the predictor, (n, K); None if there is none."""
        family, n_outputs = self._fitted_family()
        if exposure is not None and not family.has_log_link:
            raise ValueError(
                "exposure enters as an offset, its logarithm, which needs a log link, and the "
                f"{family.name} family has another one: pass offset=… in the unit of the predictor."
            )
        known = coerce.offset(given, exposure, n_samples, n_outputs)
        if known is not None and family.has_log_link and np.abs(known).max() > LARGEST_LOG:
            i = int(np.abs(known).max(axis=1).argmax())
            raise InputError(
                f"offset and log exposure of sample {i} make {np.abs(known[i]).max():g}, and the "
                f"{family.name} family takes e to this power: give at most {LARGEST_LOG}, in logs."
            )
        return known

    # ------------------------------------------------------------------ predicting

    def _means(self, z: np.ndarray) -> np.ndarray:
        """Return the means g⁻¹(z) of linear predictors, (n, K)."""
        means = self._fitted_family()[0].inverse_link(torch.from_numpy(z)).numpy()
        wrong = np.flatnonzero(~np.isfinite(means).all(axis=1))
        if len(wrong):
            i = int(wrong[0])
            raise InputError(
                f"the prediction for sample {i} is beyond {means.dtype} (its linear predictor is "
                f"{np.abs(z[i]).max():.3g}): its rows, covariates or offset are too far from those "
                "of the fit; drop or scale it."
            )
        return means

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def warn_of_units(values: torch.Tensor, n_samples: int) -> None:
    """Warn if features are so small that penalties decide the fit, or so large that steps do.

    A ridge of 1 halves coefficients where the squares of centred pooled rows add up to 1, and their
    sum is about n times the variance of rows. Constant rows have no unit.
    """
    some = values[:: -(-len(values) // MOST_ROWS)].double()
    variances = some.var(dim=0, correction=0)
    largest, total = float(variances.max()) ** 0.5, float(variances.sum())
    if n_samples * total < 1 and 1e-12 * float(some.abs().max()) < largest:
        found = "small (standard deviations of at most {:.1g}) that penalties decide this fit"
    elif largest > LARGEST_SPREAD:
        found = "large (standard deviations of up to {:.1g}) that training may end early"
    else:
        return
    warn(
        f"the features of X are so {found.format(largest)}: standardize the rows, or choose "
        "solver='auto' of DiagAttRegressor and DiagAttClassifier, which scales rows itself.",
    )
