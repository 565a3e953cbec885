"""Ragged samples: one packed array of rows and the offsets that cut it into samples.

A sample is a matrix ``X_i`` of shape ``(p_i, d)`` and ``p_i`` differs from sample to sample.
All rows of all samples stand in one array ``values`` of shape ``(N, d)``, ``N = Σ p_i``; sample
``i`` is ``values[offsets[i]:offsets[i + 1]]``. Nothing is ever padded.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from diagatt.arrays import (
    InputError,
    float_matrix,
    from_arrow_sparse,
    frozen,
    is_sparse,
    sparse_matrix,
)
from diagatt.coerce import (
    offsets_from,
    pack_arrow,
    pack_dense,
    pack_frame,
    pack_nested,
    pack_padded,
    pack_samples,
    row_name,
    row_weights,
    samples,
    stacked,
)
from diagatt.names import checked, checked_ids, chosen_ids, id_texts, joined_ids, listed, names_of


class RaggedRows(Sequence):
    """Many samples of differing length, packed without padding.

    Parameters
    ----------
    values : array or sparse matrix of scipy or Arrow, of shape (n_rows, n_features)
        The rows of all samples, one sample after the other. float32 and float64 are kept, other
        real types become float64. A C-contiguous array is not copied. A sparse matrix stays one, in
        CSR form.
    offsets : array of shape (n_samples + 1,)
        ``offsets[0] = 0``, strictly increasing, ``offsets[-1] = n_rows``.
    feature_names : sequence of n_features different strings, optional
        Frames give theirs. An estimator that was fitted with names takes columns by name.
    sample_ids, row_ids : sequences of n_samples and n_rows, optional
        Ids of samples and rows. They are text: ``007`` stays ``"007"``.
    row_weight : array of shape (n_rows,), optional
        How many each row stands for, such as cells of a cluster or reads of a receptor: attention
        is :math:`κ_j ∝ w_j e^{ψ_j}`, and a row of weight 3 counts as three rows.

    Attributes
    ----------
    values, offsets : ndarray
        Read-only views; `values` is a CSR array if `is_sparse`.
    is_sparse : bool
    feature_names : tuple of str, or None
    sample_ids, row_ids : arrays of str, or None
    row_weight, log_prior : arrays of shape (n_rows,), or None
        Weights of rows, and their logarithms.
    lengths : ndarray of shape (n_samples,)
        Number of rows of each sample, the paper's p⁽ⁱ⁾.
    n_rows, n_features : int

    See Also
    --------
    RaggedRows.from_samples : from a list of 2-D arrays.
    RaggedRows.from_padded : from a padded array and lengths or a mask.
    RaggedRows.from_frame : from a long table.
    RaggedRows.from_arrow : from a pyarrow list column.
    RaggedRows.from_torch : from a dense or a jagged nested tensor.

    Examples
    --------
    >>> import numpy as np
    >>> X = RaggedRows.from_samples([np.zeros((2, 3)), np.ones((1, 3))])
    >>> X
    RaggedRows(n_samples=2, n_rows=3, n_features=3, dtype=float64)
    >>> X[1]
    array([[1., 1., 1.]])
    >>> X[[1, 0]].lengths
    array([1, 2])

    Columns of frames are matched by name:

    >>> import pandas as pd
    >>> frames = [pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"b": [4], "a": [3]})]
    >>> X = RaggedRows.from_samples(frames)
    >>> X.feature_names, X[1]
    (('a', 'b'), array([[3., 4.]]))
    >>> X.with_features(["b"]).values
    array([[2.],
           [4.]])
    """

    __slots__ = ("_feature_names", "_offsets", "_row_ids", "_row_weight", "_sample_ids", "_values")

    def __init__(
        self,
        values: Any,
        offsets: Any,
        feature_names: Sequence[str] | None = None,
        sample_ids: Any = None,
        row_ids: Any = None,
        row_weight: Any = None,
    ) -> None:
        cuts = np.asarray(offsets)
        if cuts.ndim != 1 or len(cuts) < 1 or cuts.dtype.kind not in "iu":
            raise ValueError("offsets must be a 1-D integer array of length n_samples + 1.")
        cuts = np.ascontiguousarray(cuts, dtype=np.int64)
        values = from_arrow_sparse(values)
        if is_sparse(values):
            packed = sparse_matrix(values, "values")
        else:
            packed = float_matrix(values, "values", lambda at: row_name(cuts, int(at[0])))
        n_rows = packed.shape[0]
        if len(cuts) < 2:
            raise ValueError("RaggedRows holds no sample: pass at least one (p, d) matrix.")
        if cuts[0] != 0 or cuts[-1] != n_rows:
            raise ValueError(
                f"offsets must run from 0 to the number of rows ({n_rows}), "
                f"got {cuts[0]} to {cuts[-1]}."
            )
        empty = np.flatnonzero(np.diff(cuts) <= 0)
        if len(empty):
            raise ValueError(
                f"sample {empty[0]} has no rows: every sample needs at least one row; drop it."
            )
        self._values: Any = packed if is_sparse(packed) else frozen(packed)
        self._offsets = frozen(cuts)
        if feature_names is None:
            feature_names = names_of(values, "values")
        self._feature_names = (
            None if feature_names is None else checked(feature_names, "X", packed.shape[1])
        )
        self._sample_ids = checked_ids(sample_ids, "sample_ids", len(cuts) - 1)
        self._row_ids = checked_ids(row_ids, "row_ids", n_rows)
        self._row_weight = None if row_weight is None else frozen(row_weights(row_weight, cuts))

    # ------------------------------------------------------------------ builders

    @classmethod
    def from_samples(cls, samples: Iterable[Any]) -> RaggedRows:
        """Pack a list of ``(p_i, d)`` arrays (or torch tensors).

        One sample of one list is packed without a copy.
        """
        return cls(*pack_samples(samples))

    @classmethod
    def from_rows(cls, rows: Any) -> RaggedRows:
        """Turn an ``(n, d)`` array or frame into n samples of one row each (no copy)."""
        values = float_matrix(rows, "rows", lambda at: f"sample {at[0]}, row 0")
        return cls(values, np.arange(len(values) + 1), names_of(rows, "rows"))

    @classmethod
    def from_dense(cls, samples: Any) -> RaggedRows:
        """Turn an ``(n, p, d)`` array into n samples of p rows each (no copy if C-contiguous)."""
        return cls(*pack_dense(samples))

    @classmethod
    def from_padded(cls, padded: Any, lengths: Any = None, mask: Any = None) -> RaggedRows:
        """Drop the padding of an ``(n, p_max, d)`` array.

        Parameters
        ----------
        padded : array of shape (n, p_max, d)
        lengths : array of shape (n,), optional
            The first ``lengths[i]`` rows of sample i are real.
        mask : bool array of shape (n, p_max), optional
            True where a row is real. Give exactly one of ``lengths`` and ``mask``.
        """
        return cls(*pack_padded(padded, lengths, mask))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        sample: str,
        features: Sequence[str] | None = None,
        *,
        row: str | None = None,
        row_weight: str | None = None,
    ) -> tuple[RaggedRows, np.ndarray]:
        """Pack a long table: one line per row, and a column that names the row's sample.

        Parameters
        ----------
        frame : pandas or polars DataFrame, pyarrow Table, or mapping of columns
        sample : str
            Column of sample ids. Samples keep the order in which their ids first appear, rows
            the order in which they stand; a sample's rows need not be adjacent.
        features : list of str, optional
            Feature columns; all other columns by default.
        row : str, optional
            Column of row ids.
        row_weight : str, optional
            Column of weights of rows.

        Returns
        -------
        RaggedRows, ids
            The samples, with names of features and ids, and the id of each as it stood.
        """
        packed, ids = pack_frame(frame, sample, features, row, row_weight)
        return cls(*packed), ids

    @classmethod
    def from_arrow(cls, column: Any) -> RaggedRows:
        """Pack a pyarrow column of lists of (fixed-size or equal) lists of numbers.

        The inner values are used where they stand, without a copy, if the column is one chunk.
        """
        return cls(*pack_arrow(column))

    @classmethod
    def from_torch(cls, tensor: Any) -> RaggedRows:
        """Pack a dense ``(n, p, d)`` or ``(n, d)`` tensor, or a jagged nested tensor."""
        return cls(
            *(pack_nested(tensor) if getattr(tensor, "is_nested", False) else samples(tensor))
        )

    @classmethod
    def coerce(cls, X: Any) -> RaggedRows:
        """Pack whatever `diagatt.coerce.samples` takes; a 2-D array is n one-row samples."""
        return (
            X.to_rows() if hasattr(X, "to_rows") and not isinstance(X, type) else cls(*samples(X))
        )

    @classmethod
    def concatenate(cls, parts: Iterable[RaggedRows]) -> RaggedRows:
        """Put collections of samples one after the other."""
        parts = list(parts)
        if not parts:
            raise ValueError("nothing to concatenate: pass at least one RaggedRows.")
        for k, part in enumerate(parts):
            if not isinstance(part, RaggedRows):
                raise TypeError(f"part {k} is a {type(part).__name__}: pass RaggedRows.")
            if part.n_features != parts[0].n_features:
                raise ValueError(
                    f"part {k} has {part.n_features} features, part 0 has {parts[0].n_features}."
                )
        names = parts[0].feature_names
        for k, part in enumerate(parts):
            if (part.feature_names is None) != (names is None):
                raise ValueError(
                    f"part {k} and part 0 differ in whether they have names of features: name both "
                    "or none."
                )
            parts[k] = part if names is None else part.with_features(names)
        lengths = np.concatenate([part.lengths for part in parts])
        ids = joined_ids([p.sample_ids for p in parts]), joined_ids([p.row_ids for p in parts])
        values = stacked([part.values for part in parts])
        weighted = any(part.row_weight is not None for part in parts)
        weights = [np.ones(p.n_rows) if p.row_weight is None else p.row_weight for p in parts]
        own = np.concatenate(weights) if weighted else None
        return cls(values, offsets_from(lengths), names, *ids, own)

    # ------------------------------------------------------------------ reading

    @property
    def values(self) -> Any:
        """All rows, (n_rows, n_features), read-only; a CSR array if they are sparse."""
        return self._values

    @property
    def is_sparse(self) -> bool:
        """Whether rows are kept without their zeros."""
        return is_sparse(self._values)

    @property
    def offsets(self) -> np.ndarray:
        """Where samples begin and end, (n_samples + 1,), read-only."""
        return self._offsets

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features; None if the source has none."""
        return self._feature_names

    @property
    def sample_ids(self) -> np.ndarray | None:
        """Ids of the samples, (n_samples,) of str; None if they have none."""
        return id_texts(self._sample_ids)

    @property
    def row_ids(self) -> np.ndarray | None:
        """Ids of the rows, (n_rows,) of str; None if they have none."""
        return id_texts(self._row_ids)

    @property
    def log_prior(self) -> np.ndarray | None:
        """Logarithms of the rows' weights, (n_rows,), which are added to scores; None without."""
        return None if self._row_weight is None else np.log(self._row_weight)

    @property
    def has_row_weights(self) -> bool:
        """Whether rows have weights."""
        return self._row_weight is not None

    @property
    def row_weight(self) -> np.ndarray | None:
        """Weights of the rows, (n_rows,); None if all count alike."""
        return self._row_weight

    @property
    def lengths(self) -> np.ndarray:
        """Rows of each sample, (n_samples,)."""
        return np.diff(self._offsets)

    def shortest(self) -> tuple[int, int]:
        """Return index and length of the (first) sample with the fewest rows."""
        sample = int(np.argmin(self.lengths))
        return sample, int(self.lengths[sample])

    @property
    def n_rows(self) -> int:
        """Rows of all samples together."""
        return self._values.shape[0]

    @property
    def n_features(self) -> int:
        """Features of a row, the paper's d."""
        return self._values.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64."""
        return self._values.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the packed rows and offsets."""
        rows = self._values
        parts = (rows.data, rows.indices, rows.indptr) if self.is_sparse else (rows,)
        return sum(part.nbytes for part in parts) + self._offsets.nbytes

    @property
    def shape(self) -> tuple[int]:
        """(n_samples,): to scikit-learn's splitters this is a sequence of samples."""
        return (len(self),)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __iter__(self) -> Iterator[np.ndarray]:
        for start, stop in zip(self._offsets[:-1], self._offsets[1:], strict=True):
            yield self._values[start:stop]

    def __getitem__(self, key: Any) -> Any:
        """One sample for an int; RaggedRows for a slice, index array or mask.

        A slice with step 1 shares memory.
        """
        if isinstance(key, tuple):  # scikit-learn indexes samples as X[key, ...]
            if len(key) != 2 or key[1] is not Ellipsis:
                raise IndexError("RaggedRows has one axis, its samples: use X[i] or X[i][j].")
            key = key[0]
        if isinstance(key, bool | np.bool_):  # Python would take it as 0 or 1
            raise IndexError(f"{key} is no sample: use X[i], or a mask of {len(self)} entries.")
        if isinstance(key, int | np.integer):
            i = int(key) + (len(self) if key < 0 else 0)
            if not 0 <= i < len(self):
                raise IndexError(f"sample {key} does not exist: there are {len(self)} samples.")
            return self._values[self._offsets[i] : self._offsets[i + 1]]
        if isinstance(key, slice) and key.step in (None, 1):
            start, stop, _ = key.indices(len(self))
            if start >= stop:
                raise IndexError("the slice holds no sample.")
            cuts = self._offsets[start : stop + 1]
            rows = slice(cuts[0], cuts[-1])
            return self._part(rows, cuts - cuts[0], slice(start, stop))
        return self._take(np.arange(len(self))[key])

    def _take(self, samples: np.ndarray) -> RaggedRows:
        if samples.ndim != 1 or len(samples) == 0:
            raise IndexError("the index holds no sample, or is not one-dimensional.")
        offsets = offsets_from(self.lengths[samples])
        rows = np.repeat(self._offsets[samples] - offsets[:-1], np.diff(offsets))
        rows += np.arange(offsets[-1])  # (N_taken,) packed positions of the taken rows
        return self._part(rows, offsets, samples)

    def _part(self, rows: Any, offsets: np.ndarray, samples: Any) -> RaggedRows:
        """Return these rows of these samples, with their names."""
        pairs = ((self._sample_ids, samples), (self._row_ids, rows))
        ids = (None if own is None else chosen_ids(own, chosen) for own, chosen in pairs)
        part = RaggedRows(self._values[rows], offsets, self._feature_names, *ids)
        return part._weighted(None if self._row_weight is None else self._row_weight[rows])

    def _weighted(self, checked_before: np.ndarray | None) -> RaggedRows:
        """Give these new samples weights that were checked before."""
        self._row_weight = None if checked_before is None else frozen(checked_before)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RaggedRows):
            return NotImplemented
        mine, others = self._feature_names, other._feature_names
        if mine is not None and others is not None and mine != others:
            return False
        if not np.array_equal(self._offsets, other._offsets):
            return False
        if not _same(self._row_weight, other._row_weight):
            return False
        if self.is_sparse or other.is_sparse:
            same = self.is_sparse == other.is_sparse and self.n_features == other.n_features
            return same and (self._values != other._values).nnz == 0
        return np.array_equal(self._values, other._values)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple:
        names = (self._feature_names, self.sample_ids, self.row_ids)
        values = self._values if self.is_sparse else np.array(self._values)
        return RaggedRows, (values, np.array(self._offsets), *names, self.row_weight)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError(
            "RaggedRows is not one array: use .values for the packed rows, or .to_padded(). A "
            "transformer of rows is an argument of the model, encoder=StandardScaler(), and no "
            "step of a pipeline."
        )

    def __repr__(self) -> str:
        return (
            f"RaggedRows(n_samples={len(self)}, n_rows={self.n_rows}, "
            f"n_features={self.n_features}, dtype={self.dtype})"
        )

    # ------------------------------------------------------------------ conversions

    def to_rows(self) -> RaggedRows:
        """Return these samples; a `RowStore` reads its own into memory."""
        return self

    def to_dense(self) -> RaggedRows:
        """Return the same samples with all their zeros."""
        return self.with_values(self._values.toarray()) if self.is_sparse else self

    def astype(self, dtype: Any) -> RaggedRows:
        """Return these samples in another float type (the same object if it is that type)."""
        if self.dtype == np.dtype(dtype):
            return self
        return self.with_values(self._values.astype(dtype))

    def with_values(self, values: Any) -> RaggedRows:
        """Return the same samples with other row vectors: scaled, projected, embedded.

        Ids are kept, and names of features if there are as many features as before.
        """
        names = self._feature_names if np.shape(values)[1:] == (self.n_features,) else None
        return self._like(values, names)

    def _like(self, values: Any, names: Sequence[str] | None) -> RaggedRows:
        """Return the same samples with other row vectors, whose features have these names."""
        made = RaggedRows(values, self._offsets, names, self._sample_ids, self._row_ids)
        return made._weighted(self._row_weight)

    def with_row_weight(self, row_weight: Any) -> RaggedRows:
        """Return the same samples with weights of their rows, or with none.

        Parameters
        ----------
        row_weight : array of shape (n_rows,), list of arrays of shape (p_i,), or None

        Examples
        --------
        >>> X = RaggedRows.from_samples([np.zeros((2, 3)), np.ones((1, 3))])
        >>> X.with_row_weight([[1, 4], [2]]).row_weight.round(6)
        array([1., 4., 2.])
        """
        given = row_weight
        if isinstance(given, list | tuple) and len(given) and np.ndim(given[0]) == 1:
            given = np.concatenate([np.asarray(one) for one in given])
        names = (self._feature_names, self._sample_ids, self._row_ids)
        return RaggedRows(self._values, self._offsets, *names, given)

    def with_log_prior(self, log_prior: Any) -> RaggedRows:
        """Return the same samples with the logarithms of weights of their rows, or with none."""
        given = None if log_prior is None else np.exp(np.asarray(log_prior, dtype=np.float64))
        return self.with_row_weight(given)

    def with_features(self, names: Sequence[str]) -> RaggedRows:
        """Select and order features by name."""
        if self._feature_names is None:
            raise ValueError("these samples have no names of features: select columns of .values.")
        wanted = checked(names, "X")
        place = {name: i for i, name in enumerate(self._feature_names)}
        missing = [name for name in wanted if name not in place]
        if missing or not wanted:
            raise ValueError(
                f"there is no feature {listed(missing)}; there are {listed(self._feature_names)}."
                if missing
                else "names is empty: name at least one feature."
            )
        if wanted == self._feature_names:
            return self
        return self._like(self._values[:, [place[name] for name in wanted]], wanted)

    def with_names(self, names: Sequence[str] | None) -> RaggedRows:
        """Return the same samples with these names of their features, or with none."""
        found = None if names is None else checked(names, "X", self.n_features)
        return self if found == self._feature_names else self._like(self._values, found)

    def to_padded(self, fill: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Pad to the longest sample: array (n, p_max, d) and mask (n, p_max) of real rows."""
        if self.is_sparse:
            return self.to_dense().to_padded(fill)
        mask = np.arange(self.lengths.max()) < self.lengths[:, None]
        padded = np.full((*mask.shape, self.n_features), fill, dtype=self.dtype)
        padded[mask] = self._values
        return padded, mask

    def to_torch(self, device: Any = "cpu", dtype: torch.dtype | None = None):
        """Return packed rows (n_rows, d) and offsets (n_samples + 1,) as tensors.

        On the CPU, in the same type, they share memory: treat them as read-only.
        """
        if self.is_sparse:
            raise InputError(
                "the rows are sparse, and only estimators with an encoder that were fitted to "
                "sparse rows, such as DiagAttRegressor, take them: pass dense rows, as "
                "RaggedRows.coerce(X).to_dense() makes them."
            )
        with warnings.catch_warnings():  # torch warns that it cannot mark a tensor read-only
            warnings.filterwarnings("ignore", message=".*not writable.*")
            values, offsets = torch.from_numpy(self._values), torch.from_numpy(self._offsets)
        return values.to(device=device, dtype=dtype), offsets.to(device=device)


def _same(mine: np.ndarray | None, others: np.ndarray | None) -> bool:
    if mine is None or others is None:
        return mine is others
    return np.array_equal(mine, others)
