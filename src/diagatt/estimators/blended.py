"""Averages of several estimators, each of which reads some blocks of the features."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from diagatt import attributes
from diagatt.covariates import parted
from diagatt.estimators.base import RowsEstimator
from diagatt.estimators.routing import Scored, TakesCovariates
from diagatt.localization import top_rows
from diagatt.modelfile import ModelFileError
from diagatt.parameters import count, instance, shown
from diagatt.persistence import (
    AnyPath,
    Document,
    Tensors,
    from_document,
    refusal,
    restore,
    to_document,
)
from diagatt.ragged import RaggedRows
from diagatt.solvers.checkpoint import with_prefix


@dataclass(eq=False, repr=False)
class _Blended(TakesCovariates, RowsEstimator):
    """What regression and classification share."""

    members: Sequence[tuple[str, Any, Sequence[int] | None]]
    _: KW_ONLY
    n_blocks: int = 1
    random_state: Any = None

    rules: ClassVar = {
        "members": instance("a list of (name, estimator, blocks)", Sequence),
        "n_blocks": count(1),
    }
    further_entries: ClassVar[tuple[str, ...]] = ("members",)
    _averaged: ClassVar[str] = "predict"
    members_: list[Any] = field(init=False)

    @property
    def _depends_on_units(self) -> bool:  # its members do, and warn themselves
        return False

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        covariates: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit every member to its blocks.

        Parameters
        ----------
        X : RaggedRows, list of (p_i, d) arrays, (n, p, d) array, or (n, d) array
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
        covariates : array of shape (n, q), optional
            If all members take them.
        groups : array of shape (n,), optional
            If all members take them: samples of one group are held out together when ways to fit
            are compared.
        """
        return self._fit(X, y, sample_weight, covariates, groups=groups)

    def _problem(self, X: Any, y: Any, sample_weight: Any, covariates: Any, **known: Any) -> Any:
        """Return the rows of each member, and the arguments that all members are given."""
        rows = self._validate_rows(X, reset=True)
        self._check_members()
        given = {"y": y, "sample_weight": sample_weight, "covariates": covariates, **known}
        return self._parts(rows), {k: v for k, v in given.items() if k == "y" or v is not None}

    def _fit_problem(self, problem: Any) -> None:
        parts, given = problem
        members = [clone(member) for _, member, _ in self.members]
        if self.random_state is not None:
            seeds = check_random_state(self.random_state).randint(2**31, size=len(members))
            for member, seed in zip(members, seeds, strict=True):
                member.set_params(random_state=int(seed))
        self.members_ = [m.fit(part, **given) for m, part in zip(members, parts, strict=True)]

    def attention(self, X: Any) -> list[np.ndarray]:
        """Return the mean of the members' attention weights, arrays (p_i, 1) that sum to 1."""
        weights, offsets = self._weights(X)
        return np.split(weights[:, None], offsets[1:-1])

    def locate(self, X: Any) -> np.ndarray:
        """Return the row with the largest mean attention, (n_samples, 1)."""
        return top_rows(*self._weights(X), 1)

    def _weights(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        rows = self._validate_rows(X, reset=False)
        total = np.zeros(rows.n_rows)
        for member, part in zip(self.members_, self._parts(rows), strict=True):
            total += np.concatenate(member.attention(part)).mean(axis=1)  # over heads
        return total / len(self.members_), rows.offsets

    def _mean(self, method: str, X: Any, covariates: Any) -> np.ndarray:
        check_is_fitted(self)
        X, covariates = parted(X, covariates)
        rows = self._validate_rows(X, reset=False)
        given = {} if covariates is None else {"covariates": covariates}
        pairs = zip(self.members_, self._parts(rows), strict=True)
        return np.mean([getattr(member, method)(part, **given) for member, part in pairs], axis=0)

    # ------------------------------------------------------------------ blocks

    def _parts(self, rows: RaggedRows) -> list[RaggedRows]:
        """Return the rows of every member, with the features of its blocks."""
        width, parts = rows.n_features // self.n_blocks, []
        for _, _, blocks in self.members:
            if blocks is None:
                parts.append(rows)
                continue
            columns = np.concatenate([np.arange(b * width, (b + 1) * width) for b in blocks])
            names = rows.feature_names and [rows.feature_names[c] for c in columns]
            parts.append(RaggedRows(rows.values[:, columns], rows.offsets, names))
        return parts

    def _check_members(self) -> None:
        if not len(self.members):
            raise ValueError("members is empty: give at least one (name, estimator, blocks).")
        if self.n_features_in_ % self.n_blocks:
            raise ValueError(
                f"{self.n_features_in_} features are not {self.n_blocks} blocks of equal size: "
                "set n_blocks."
            )
        for given in self.members:
            if not isinstance(given, Sequence) or len(given) != 3:
                raise ValueError(f"a member is (name, estimator, blocks), not {shown(given)}.")
            name, member, blocks = given
            if not hasattr(member, "attention"):
                raise TypeError(f"member {name!r}, {member!r}, has no attention to average.")
            if blocks is None:
                continue
            whole = count(0, self.n_blocks - 1)
            if not len(blocks) or not all(whole.accepts(b) for b in blocks):
                raise ValueError(
                    f"member {name!r} reads blocks {list(blocks)}: give at least one index from 0 "
                    f"to {self.n_blocks - 1}, or None for all."
                )

    # ------------------------------------------------------------------ files

    def to_document(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return tensors and JSON document of the fitted members."""
        check_is_fitted(self)
        shell = copy(self)
        del shell.members_
        shell.members = [
            (name, None, None if blocks is None else list(blocks))
            for name, _, blocks in self.members
        ]
        tensors, document = to_document(shell)
        document["members"] = []
        for k, member in enumerate(self.members_):
            own, inner = member.to_document()
            tensors |= {f"{k}.{name}": tensor for name, tensor in own.items()}
            document["members"].append(inner)
        return tensors, document

    @classmethod
    def from_document(
        cls, tensors: Tensors, document: Document, path: AnyPath = "the file"
    ) -> Self:
        """Return the fitted estimator that `to_document` took apart."""
        stored = document.get("members")
        if not isinstance(stored, list):
            raise ModelFileError(f"{path} has no list of the members of its {cls.__name__}.")
        prefixes = tuple(f"{k}." for k in range(len(stored)))
        own = {name: t for name, t in tensors.items() if not name.startswith(prefixes)}
        blend = from_document(cls, own, document, path)
        members = [
            restore(with_prefix(prefix, tensors), member, path)
            for prefix, member in zip(prefixes, stored, strict=True)
        ]
        try:
            blend._take_members(members)
        except attributes.NONSENSE as error:
            raise refusal(path, cls.__name__, error) from error
        return blend

    def _take_members(self, members: list[Any]) -> None:
        """Set the fitted members of a file; refuse them if they are not those of this blend."""
        pairs = zip(self.members, members, strict=True)
        self.members = [(name, clone(member), blocks) for (name, _, blocks), member in pairs]
        self._check_members()
        width = self.n_features_in_ // self.n_blocks
        for (name, _, blocks), member in zip(self.members, members, strict=True):
            expected = self.n_features_in_ if blocks is None else width * len(blocks)
            if not hasattr(member, self._averaged):
                raise ValueError(f"the member {shown(name)} has no {self._averaged}")
            if member.n_features_in_ != expected:
                raise ValueError(
                    f"the member {shown(name)} reads {member.n_features_in_} features instead of "
                    f"{expected}"
                )
        self.members_ = members


class BlendedRegressor(Scored, RegressorMixin, _Blended):
    r"""Mean of several regressors that read different blocks of the features.

    .. math:: \hat y = \tfrac1M \textstyle\sum_m \hat y_m, \qquad
              \hat κ = \tfrac1M \textstyle\sum_m \hat κ_m

    Parameters
    ----------
    members : list of (name, estimator, blocks)
        Regressors of diagatt with attention; `blocks` lists the indices of the blocks that the
        estimator reads, or is None for all features.
    n_blocks : int
        How many equal blocks the features fall into, as joined layers of a language model do.
    random_state : int, RandomState or None
        Seeds the members, each differently, unless it is None.

    Attributes
    ----------
    members_ : list of regressors
        Fitted.

    Examples
    --------
    >>> from diagatt import BlendedRegressor, DiagAttRegressor, simulate
    >>> data = simulate.regression(200, p=5, d=4, seed=0)
    >>> members = [("all", DiagAttRegressor(), None), ("half", DiagAttRegressor(), [0])]
    >>> model = BlendedRegressor(members, n_blocks=2, random_state=0).fit(data.X, data.y)
    >>> model.predict(data.X[:3]).shape, model.locate(data.X[:3]).shape
    ((3,), (3, 1))
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Members are checked when they are fitted: here they may still be anything.
        members = self.members if isinstance(self.members, Sequence) else ()
        tags.target_tags.multi_output = all(
            isinstance(given, Sequence)
            and len(given) == 3
            and hasattr(given[1], "__sklearn_tags__")
            and get_tags(given[1]).target_tags.multi_output
            for given in members
        )
        return tags

    def predict(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return the mean of the members' predictions, (n_samples,)."""
        return self._mean("predict", X, covariates)


class BlendedClassifier(Scored, ClassifierMixin, _Blended):
    """Mean of the probabilities of several classifiers.

    Parameters and attributes are those of `BlendedRegressor`, and ``classes_``.

    Examples
    --------
    >>> from diagatt import BlendedClassifier, DiagAttClassifier, simulate
    >>> data = simulate.classification(200, p=5, d=4, seed=0)
    >>> members = [("all", DiagAttClassifier(), None), ("half", DiagAttClassifier(), [0])]
    >>> model = BlendedClassifier(members, n_blocks=2, random_state=0).fit(data.X, data.y)
    >>> model.predict_proba(data.X[:3]).shape
    (3, 2)
    """

    _averaged: ClassVar[str] = "predict_proba"
    fitted_rules: ClassVar[attributes.Rules] = {"classes_": attributes.classes()}

    def _take_members(self, members: list[Any]) -> None:
        super()._take_members(members)
        for (name, *_), member in zip(self.members, members, strict=True):
            if not np.array_equal(member.classes_, self.classes_):
                raise ValueError(f"the member {shown(name)} has other classes than the blend")

    def _fit_problem(self, problem: Any) -> None:
        super()._fit_problem(problem)
        self.classes_ = self.members_[0].classes_

    def predict_proba(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return the mean of the members' class probabilities, (n_samples, n_classes)."""
        return self._mean("predict_proba", X, covariates)

    def predict(self, X: Any, covariates: Any = None) -> np.ndarray:
        """Return the most probable classes, (n_samples,)."""
        best = self.predict_proba(X, covariates).argmax(axis=1)
        return self.classes_[best]
