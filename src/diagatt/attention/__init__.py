"""Attention as torch modules."""

from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.gated import GatedAttention
from diagatt.attention.module import AttentionModule
from diagatt.attention.standard import StandardAttention

__all__ = ["AttentionModule", "DiagonalAttention", "GatedAttention", "StandardAttention"]
