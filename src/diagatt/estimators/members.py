"""Members of a fitted blend as arrays and names, the form in which a model file stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch

from diagatt.attention.blend import Blend, Member
from diagatt.attention.coupling import READOUTS
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.sample_features import FEATURES, SampleFeatures, n_sample_features
from diagatt.families import Family
from diagatt.parameters import shown
from diagatt.rowmaps import ARRAYS, ROW_MAPS, Given
from diagatt.scores import get_score_form

_OF_FEATURES = ("feature_shift", "feature_scale")
_OF_ATTENTION = ("query", "value", "intercept", "covariate")


@dataclass(frozen=True, eq=False)
class StoredMember:
    """One member of a blend.

    Attributes
    ----------
    rows : str
        Name of its row map.
    readout : {"pooled", "mixture"}
    features : tuple of str
        Features of whole samples.
    weight, vote : float
        Share in predictions and in the attention.
    arrays : dict
        Of the row map, of the features, and of the attention (W, V, b and γ of mapped rows).
    """

    rows: str
    readout: str
    features: tuple[str, ...]
    weight: float
    vote: float
    arrays: dict[str, np.ndarray]

    @classmethod
    def of(cls, member: Member) -> Self:
        """Return the arrays and names of a member."""
        attention = member.attention
        tensors = {name: t for name, t in member.rows._buffers.items() if t is not None}
        tensors |= {"feature_shift": member.features.shift, "feature_scale": member.features.scale}
        tensors |= {
            "query": attention.query_key.matrix(),
            "value": attention.value,
            "intercept": attention.intercept,
            "covariate": attention.covariate,
        }
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
        words = (member.rows.name, attention.readout, member.features.kinds)
        return cls(*words, member.weight, member.vote, arrays)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredMember) or self.to_document() != other.to_document():
            return False
        same = self.arrays.keys() == other.arrays.keys()
        return same and all(np.array_equal(a, other.arrays[k]) for k, a in self.arrays.items())

    __hash__ = None  # type: ignore[assignment]

    def maps_as(self, other: StoredMember) -> bool:
        """Whether both map rows alike."""
        pairs = ((self.arrays.get(name), other.arrays.get(name)) for name in ARRAYS)
        return self.rows == other.rows and all(
            a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in pairs
        )

    def member(self, n_features: int, family: Family, **how: Any) -> Member:
        """Return the member; `how` are settings that all attentions of the blend share."""
        # Copies have torch's memory layout, whether an array comes from a fit or from a file.
        # Otherwise kernels would add up in another order, and the last digits would differ.
        arrays = {k: torch.tensor(np.ascontiguousarray(a)) for k, a in self.arrays.items()}
        rows = ROW_MAPS[self.rows].of(arrays, n_features)
        features = SampleFeatures(self.features, *(arrays[name] for name in _OF_FEATURES))
        query, *effects = (arrays[name] for name in _OF_ATTENTION)
        attention = DiagonalAttention.with_parameters(
            query, None, *effects, readout=self.readout, family=family, **how
        )
        return Member(attention, rows, features, self.weight, self.vote)

    def of_outcome(self, k: int) -> StoredMember:
        """Return the member that predicts outcome k alone; outcomes are the last axis."""
        own = {name: self.arrays[name][..., k : k + 1] for name in _OF_ATTENTION[1:]}
        return replace(self, arrays={**self.arrays, **own})

    # ------------------------------------------------------------------ files

    def to_document(self) -> dict[str, Any]:
        """Return everything but the arrays, as JSON can hold it."""
        words = {"rows": self.rows, "readout": self.readout, "features": list(self.features)}
        return {**words, "weight": self.weight, "vote": self.vote}

    @classmethod
    def from_document(cls, document: Any, arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the member that a file holds; anything invalid is a ValueError."""
        if not isinstance(document, dict) or set(document) != {
            *("rows", "readout", "features", "weight", "vote")
        }:
            raise ValueError(f"a member of its blend is {shown(document)}")
        rows, readout, features = (document[name] for name in ("rows", "readout", "features"))
        if not isinstance(rows, str) or rows not in ROW_MAPS:
            raise ValueError(f"a member has rows of the unknown map {shown(rows)}")
        if readout not in READOUTS:
            raise ValueError(f"a member has the unknown readout {shown(readout)}")
        if not isinstance(features, list) or not all(f in FEATURES for f in features):
            raise ValueError(f"a member has the unknown features {shown(features)}")
        for name in ("weight", "vote"):
            share = document[name]
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise ValueError(f"a member has the {name} {shown(share)}, which is not a share")
        return cls(rows, readout, tuple(features), document["weight"], document["vote"], {**arrays})

    def check(
        self, n_features: int, n_covariates: int, n_outputs: int, dtype: np.dtype, **how: Any
    ) -> None:
        """Refuse arrays whose types, shapes or entries do not fit together."""
        required = {*ARRAYS[:3], *_OF_FEATURES, *_OF_ATTENTION}
        required |= ROW_MAPS[self.rows].always
        found = set(self.arrays)
        wrong = sorted((required - found) | (found - required - ROW_MAPS[self.rows].perhaps))
        if wrong:
            raise ValueError(f"a member of its blend lacks or has the array {shown(wrong[0])}")
        for name, array in self.arrays.items():
            wanted = dtype if name in _OF_ATTENTION else np.dtype(np.float64)
            wanted = np.dtype(np.int64) if name == "columns" else wanted
            if array.dtype != wanted or not np.isfinite(array).all():
                raise ValueError(
                    f"the array {name} of a member does not hold finite numbers of type {wanted}"
                )
        expected = self._shapes(n_features, n_covariates, n_outputs, **how)
        for name, shape in expected.items():
            if self.arrays[name].shape != shape:
                raise ValueError(
                    f"{name} of a member must have the shape {shape}, got {self.arrays[name].shape}"
                )
        columns = self.arrays["columns"]
        if (
            not ((columns >= 0) & (columns < n_features)).all()
            or (self.rows == Given.name and not np.array_equal(columns, np.arange(n_features)))
            or any((self.arrays[name] <= 0).any() for name in ("scale", "feature_scale"))
            or 0
            in (self.arrays["value"].shape[1], *(self._size(n) for n in ("knots", "landmarks")))
        ):
            raise ValueError("a member has invalid columns, knots, landmarks or scales")

    def _size(self, name: str) -> int:
        """Return the count of entries of an array, 1 if the map has no such array."""
        return self.arrays[name].size if name in self.arrays else 1

    def _shapes(
        self, d: int, q: int, K: int, n_heads: int, score_form: str
    ) -> dict[str, tuple[int, ...]]:
        kept = len(np.atleast_1d(self.arrays["columns"]))
        kind = ROW_MAPS[self.rows]
        mapped = width = kept * kind.width
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(ARRAYS[:3], (kept,))
        if "knots" in self.arrays:
            shapes["knots"] = (kept, self.arrays["knots"].shape[-1])
        if "landmarks" in self.arrays:
            mapped = width = len(np.atleast_1d(self.arrays["landmarks"]))
            shapes["landmarks"] = (width, kept)
        if "directions" in self.arrays or "centre" in self.arrays:
            mapped = self.arrays["directions"].shape[-1]
            shapes |= {"centre": (width,), "directions": (width, mapped)}
        n_extra = n_sample_features(self.features, mapped)
        D = get_score_form(score_form).side(mapped)
        return {
            **shapes,
            **dict.fromkeys(_OF_FEATURES, (n_extra,)),
            "query": (n_heads, D, D),
            "value": (n_heads, mapped, K),
            "intercept": (K,),
            "covariate": (q + n_extra, K),
        }


def blend_of(members: Sequence[StoredMember], n_features: int, family: Family, **how: Any) -> Blend:
    """Return the blend of these members; members with equal maps share one."""
    made: list[Member] = []
    for k, stored in enumerate(members):
        member = stored.member(n_features, family, **how)
        same = (own for own, other in zip(made, members[:k], strict=True) if stored.maps_as(other))
        member.rows = next((own.rows for own in same), member.rows)
        made.append(member)
    return Blend(made, family)
