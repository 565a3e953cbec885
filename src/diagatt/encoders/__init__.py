"""Encoders transform rows before a model sees them; they are fitted to rows and kept in the model.

``DiagAttRegressor(encoder=PCA(20))`` takes a transformer of scikit-learn; sparse rows have an
encoder of their own, `Principal`. An `MLP` or a torch module is trained with the model.
"""

from diagatt.encoders.principal import Principal
from diagatt.encoders.row_encoder import RowEncoder, fit_encoder
from diagatt.encoders.trained import MLP

__all__ = ["MLP", "Principal", "RowEncoder", "fit_encoder"]
