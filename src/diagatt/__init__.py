"""Individualized sparse regression with diagonalized attention."""

from diagatt.ragged import RaggedRows

__version__ = "0.1.0"
__all__ = ["RaggedRows"]
