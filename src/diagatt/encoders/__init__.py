"""Encoders: what happens to rows before a model sees them, fitted to rows and kept with the model.

``DiagAttRegressor(encoder=PCA(20))`` takes a transformer of scikit-learn; sparse rows have an
encoder of their own, `Principal`.
"""

from diagatt.encoders.principal import Principal
from diagatt.encoders.row_encoder import RowEncoder, fit_encoder

__all__ = ["Principal", "RowEncoder", "fit_encoder"]
