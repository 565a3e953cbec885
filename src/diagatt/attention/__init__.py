"""Attention as torch modules."""

from diagatt.attention.diagonal import DiagonalAttention

__all__ = ["DiagonalAttention"]
