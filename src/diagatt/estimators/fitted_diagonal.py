"""A fit of diagonalized attention as attributes, as a module, and in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted
from torch import Tensor

from diagatt import attributes, parameters
from diagatt.arrays import is_sparse
from diagatt.attention.blend import Blend
from diagatt.attention.coupling import COUPLINGS, READOUTS, least_rows
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.encoders import RowEncoder, fit_encoder
from diagatt.encoders.parameters import from_json as encoder_from_json
from diagatt.encoders.parameters import to_json as encoder_to_json
from diagatt.encoders.trained import is_trained
from diagatt.estimators.incomplete import TakesIncompleteRows
from diagatt.estimators.members import StoredMember, blend_of
from diagatt.modelfile import ModelFileError
from diagatt.persistence import (
    AnyPath,
    Document,
    Tensors,
    from_document,
    refusal,
    to_document,
    to_json,
)
from diagatt.ragged import RaggedRows
from diagatt.scores import SCORE_FORMS, get_score_form
from diagatt.solvers import Auto, Checkpoint, Gradient, Likelihood, Refined, Solver, Uniform
from diagatt.solvers.checkpoint import with_prefix
from diagatt.stores import RowStore


class FittedDiagonal(TakesIncompleteRows):
    """The attributes, the encoder, the module and the file of a fit of diagonalized attention."""

    fitted_rules: ClassVar[attributes.Rules] = {
        **dict.fromkeys(("query_", "value_", "intercept_", "covariate_coef_"), attributes.floats()),
        "key_": parameters.optional(attributes.floats()),
        **dict.fromkeys(("none_score_", "none_value_"), parameters.optional(attributes.floats())),
        "prevalence_": parameters.optional(parameters.share(whole=True)),
        "prevalence_interval_": parameters.optional(attributes.floats()),
        "value_se_": attributes.errors(),
        "n_heads_": parameters.count(1),
        "n_restarts_": parameters.count(1),
        "n_covariates_": parameters.count(),
        "n_samples_": attributes.size(1),
        "n_rows_": attributes.size(),
        "n_iter_": parameters.count(),
        "temperature_": parameters.positive(),
        "shape_": attributes.positives(),
        "score_form_": parameters.one_of(*SCORE_FORMS),
        "coupling_": parameters.one_of(*COUPLINGS),
        "readout_": parameters.one_of(*READOUTS),
        "solver_": attributes.text(),
        "log_likelihood_": parameters.optional(attributes.number()),
        "unevenness_": attributes.list_of(attributes.number()),
        **dict.fromkeys(("history_", "selection_", "criteria_", "contest_"), attributes.report()),
        "has_row_of_interest_": parameters.optional(parameters.boolean()),
        "described_": attributes.text(),
        "n_encoded_": attributes.size(1),
        "errors_note_": attributes.text(),
        "communication_": attributes.counts("processes", "reductions", "bytes", "sample_bytes"),
    }
    query_: np.ndarray  # (M·R, D, q), or W itself, (M·R, D, D)
    key_: np.ndarray | None  # (M·R, D, q), or None
    none_score_: np.ndarray | None = None  # (M·R,), if samples may have no row of interest
    none_value_: np.ndarray | None = None  # (M·R, [K])
    prevalence_: float | None = None
    prevalence_interval_: np.ndarray | None = None  # (2,)
    readout_: str = "pooled"  # of files that are older than the attribute
    members_: Sequence[StoredMember] = ()
    contest_: Sequence[dict] = ()
    has_row_of_interest_: bool | None = None
    described_: str = ""
    errors_note_: str = ""
    n_rows_: int = 0  # of files that are older than the attribute
    shape_: np.ndarray = np.empty(0)
    classes_: np.ndarray  # of classifiers
    further_entries: ClassVar[tuple[str, ...]] = ("members", "encoder")
    former_parameters: ClassVar[tuple[str, ...]] = ("dtype",)
    encoder: Any = None
    encoder_: RowEncoder | None = None
    n_encoded_: int

    def _validate_rows(self, X: Any, *, reset: bool) -> RaggedRows:
        rows = super()._validate_rows(X, reset=reset)
        if not reset:
            check_lengths(rows, self.coupling_, self.n_heads_)
        return rows

    def _encoded(self, rows: RaggedRows, *, reset: bool) -> RaggedRows:
        if reset and is_trained(self.encoder):
            if rows.is_sparse:
                raise ValueError(
                    "an encoder that is trained with the model takes dense rows: pass X.to_dense()."
                )
            return rows  # responses are needed
        if reset:
            self._fit_encoder(rows.values)
        return rows if self.encoder_ is None else rows.with_values(self.encoder_(rows.values))

    def _fit_encoder(self, values: Any) -> None:
        """Fit the encoder to rows; sparse rows always have one."""
        if getattr(self, "warm_start", False) and self.encoder_ is not None:
            return  # the earlier fit is about rows that this encoder made
        for name in ("n_encoded_", "encoder_"):
            self.__dict__.pop(name, None)
        if self.encoder is not None or is_sparse(values):
            self.encoder_ = fit_encoder(self.encoder, values)
            self.n_encoded_ = self.encoder_(values[:1]).shape[1]

    @property
    def _width(self) -> int:
        """Count of features of encoded rows."""
        return getattr(self, "n_encoded_", None) or self.n_features_in_

    def _encoded_names(self) -> np.ndarray:
        """Return the names of the features of encoded rows."""
        if self._width == self.n_features_in_:
            return _check_feature_names_in(self)
        return np.array([f"component {j}" for j in range(self._width)], dtype=object)

    def _fitted_shapes(self) -> dict[str, tuple[int, ...]]:
        heads, d, q = self.n_heads_ * self.n_restarts_, self._width, self.n_covariates_
        K, D = self._fitted_family()[1], get_score_form(self.score_form_).side(d)
        rank = D if self.key_ is None else self.key_.shape[-1] if self.key_.ndim else 0
        outputs = () if K == 1 else (K,)
        return {
            **super()._fitted_shapes(),
            "query_": (heads, D, rank),
            "key_": (heads, D, rank),
            "value_": (heads, *outputs, d),
            "none_score_": (heads,),
            "prevalence_interval_": (2,),
            "none_value_": (heads, *outputs),
            "intercept_": outputs,
            "covariate_coef_": (*outputs, q),
            "value_se_": (*outputs, heads * d + 1 + q),
            "shape_": self._fitted_family()[0].fitted_shape(np.shape(self.shape_)),
        }

    @property
    def query_key_(self) -> np.ndarray:
        """W of every head, (M·R, D, D); multiplied out if its factors are kept."""
        check_is_fitted(self)
        return self.query_ if self.key_ is None else self.query_ @ self.key_.swapaxes(1, 2)

    @query_key_.setter
    def query_key_(self, W: np.ndarray) -> None:
        self.query_, self.key_ = W, None

    def to_module(self) -> DiagonalAttention | Blend:
        """Return the fitted model as a torch module: one attention, or a blend of several.

        M averaged restarts are M·R heads of one attention.
        """
        check_is_fitted(self)
        if self.members_:
            family = self._fitted_family()[0]
            how = {"score_form": self.score_form_, "coupling": self.coupling_}
            return blend_of(self.members_, self._width, family, **how)
        return self._reported_module()

    def _reported_module(self) -> DiagonalAttention:
        """Return the fit that `query_key_`, `value_` and `intercept_` describe, as a module."""
        heads, d = len(self.value_), self.value_.shape[-1]
        K = np.size(self.intercept_)
        query, *effects = (
            torch.tensor(np.ascontiguousarray(array), dtype=self._dtype)
            for array in (
                self.query_,
                self.value_.reshape(heads, K, d).swapaxes(1, 2),
                np.reshape(self.intercept_, K),
                np.reshape(self.covariate_coef_, (K, -1)).T,
            )
        )
        return DiagonalAttention.with_parameters(
            query,
            None if self.key_ is None else torch.tensor(self.key_, dtype=self._dtype),
            *effects,
            none=self._none_row(heads, K),
            temperature=float(self.temperature_),
            score_form=self.score_form_,
            coupling=self.coupling_,
            groups=self.n_restarts_,
            readout=self.readout_,
            family=self._fitted_family()[0],
        )

    def _none_row(self, heads: int, K: int) -> tuple[Tensor, Tensor] | None:
        """Return score and value of the none-row, if samples may have no row of interest."""
        if self.none_score_ is None or self.none_value_ is None:
            return None
        value = torch.tensor(self.none_value_, dtype=self._dtype).reshape(heads, K)
        return torch.tensor(self.none_score_, dtype=self._dtype), value

    @property
    def _dtype(self) -> torch.dtype:
        return torch.from_numpy(self.value_).dtype

    # ------------------------------------------------------------------ files

    def to_document(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return tensors and JSON document; members have tensors of their own."""
        check_is_fitted(self)
        shell = copy(self)
        for name in ("members_", "encoder_"):
            shell.__dict__.pop(name, None)
        shell.encoder = None
        tensors, document = to_document(shell)
        if self.encoder_ is not None:
            arrays, steps = self.encoder_.to_document()
            document["encoder"] = {"parameter": encoder_to_json(self.encoder), "steps": steps}
            tensors |= {f"encoder.{name}": array for name, array in arrays.items()}
        if self.members_:
            document["members"] = [member.to_document() for member in self.members_]
            for k, member in enumerate(self.members_):
                tensors |= {f"{k}.{name}": array for name, array in member.arrays.items()}
        return tensors, document

    @classmethod
    def from_document(
        cls, tensors: Tensors, document: Document, path: AnyPath = "the file"
    ) -> Self:
        """Return the fitted estimator that `to_document` took apart."""
        stored = document.get("members", []) if isinstance(document, Mapping) else []
        if not isinstance(stored, list):
            raise ModelFileError(f"{path} has no list of the members of its {cls.__name__}.")
        prefixes = tuple(f"{k}." for k in range(len(stored)))
        others = (*prefixes, "encoder.")
        own = {name: t for name, t in tensors.items() if not name.startswith(others)}
        model = from_document(cls, own, document, path)
        try:
            model._restore_encoder(document.get("encoder"), with_prefix("encoder.", tensors))
            model.members_ = [
                StoredMember.from_document(member, with_prefix(prefix, tensors))
                for prefix, member in zip(prefixes, stored, strict=True)
            ]
            sizes = (model._width, model.n_covariates_, model._fitted_family()[1])
            how = {"n_heads": model.n_heads_, "score_form": model.score_form_}
            for member in model.members_:
                member.check(*sizes, model.value_.dtype, **how)
            total = sum(member.weight for member in model.members_)
            if model.members_ and abs(total - 1) > 1e-6:
                raise ValueError(f"the weights of its members sum to {total:g}, not to 1")
        except attributes.NONSENSE as error:
            raise refusal(path, cls.__name__, error) from error
        return model

    @classmethod
    def from_format_1(cls, tensors: Tensors, document: Document) -> tuple[Tensors, Document]:
        """Return what a file of format 1 holds in the present format."""
        names = cls._get_param_names()
        return in_present_format(names, cls.former_parameters, tensors, document)

    def _restore_encoder(self, stored: Any, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore the encoder of a file; invalid content is a ValueError."""
        if (stored is None) != (not hasattr(self, "n_encoded_")) or (stored is None and arrays):
            raise ValueError("it has half of an encoder")
        if stored is None:
            return
        if not isinstance(stored, dict) or set(stored) != {"parameter", "steps"}:
            raise ValueError(f"its encoder is {parameters.shown(stored)}")
        self.encoder_ = RowEncoder.from_document(arrays, stored["steps"])
        sizes = (self.encoder_.steps[0].n_in, self.encoder_.steps[-1].n_out)
        if sizes != (self.n_features_in_, self.n_encoded_):
            raise ValueError(f"its encoder is from {sizes[0]} to {sizes[1]} features")
        self.encoder = encoder_from_json(stored["parameter"])


def check_lengths(
    rows: RaggedRows | RowStore,
    coupling: str,
    n_heads: int,
    advice: str = "drop short samples, or fit with ",
) -> None:
    """Refuse samples that have fewer rows than heads that need distinct rows."""
    short, length = rows.shortest()
    if least_rows(coupling, n_heads) > length:
        raise ValueError(
            f"n_heads={n_heads} heads need {n_heads} distinct rows, but sample {short} has "
            f"{length}: {advice}coupling='independent'."
        )


def in_present_format(
    names_kept: Sequence[str],
    former: Sequence[str],
    tensors: Tensors,
    document: Document,
) -> tuple[Tensors, Document]:
    """Return what a file of format 1 holds, whose parameters were flat, in the present format.

    Before W had factors, it was a tensor of its own name.

    Parameters
    ----------
    names_kept : list of str
        Parameters that the estimator still has.
    former : list of str
        Parameters that it had, and that no solver has.
    tensors, document
        The content of the file.
    """
    flat = dict(document["parameters"])
    form, every = flat["score_form"], flat.pop("checkpoint_every")
    if flat["checkpoint"] is not None and every != 1:
        flat["checkpoint"] = Checkpoint(flat["checkpoint"], every)
    gone = {*names_kept, *former}
    own = {name: value for name, value in flat.items() if name not in gone}
    rank = own["rank"] or 2  # None meant two directions to the likelihood solver
    names = ("covariance", "shrinkage")
    likelihood = Likelihood(rank=rank, **{name: own.pop(name) for name in names})
    solvers: dict[str, Solver] = {"likelihood": likelihood, "gradient": Gradient(**own)}
    if flat["solver"] in solvers:
        solver: Any = solvers[flat["solver"]]
    elif repr(likelihood) + repr(solvers["gradient"]) == "Likelihood()Gradient()":
        solver = "auto"
    else:
        solver = Auto([Uniform(), likelihood, Refined(likelihood), solvers["gradient"]])
    kept = {name: value for name, value in flat.items() if name in names_kept}
    parameters = {**kept, "solver": to_json("solver", solver)}
    fitted = {**document["fitted"], "score_form_": form}
    if fitted["solver_"] == "polish":
        fitted["solver_"] = Refined.name
    if "query_key_" in tensors and "query_" not in tensors:
        fitted["key_"] = None
        tensors = {{"query_key_": "query_"}.get(name, name): t for name, t in tensors.items()}
    return tensors, {**document, "parameters": parameters, "fitted": fitted}
