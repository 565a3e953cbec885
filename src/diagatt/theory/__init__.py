"""Theory you can run: separating matrices, guarantees, rates, spectral overlap, diagnostics.

Everything takes moments or data and works in float64 closed forms. The numerical study of the
spectral-overlap condition (Table S1) is ``diagatt study run overlap``.
"""

from diagatt.arguments import check_arguments
from diagatt.theory.diagnostics import Diagnosis, HeadDiagnosis, diagnose
from diagatt.theory.growth import (
    Condition,
    GrowthReport,
    TemperatureInterval,
    growth_conditions,
    temperature_interval,
)
from diagatt.theory.guarantees import (
    LocalizationGuarantee,
    gaussian_radius,
    hanson_wright_tail,
    localization_guarantee,
    moment_radius,
    softmax_error_bound,
    subgaussian_radius,
    sufficient_dimension,
    sufficient_gap,
)
from diagatt.theory.moments import (
    Moments,
    class_moments,
    envelope,
    expected_score,
    score_gap,
    score_variance,
)
from diagatt.theory.multi_head import (
    HeadSeparation,
    MultiHeadSeparation,
    multi_head_envelope_separators,
    multi_head_separators,
    multi_head_subspace_separators,
)
from diagatt.theory.overlap import (
    HeadOverlap,
    SpectralOverlap,
    analytic_family,
    analytic_overlap,
    class_specific_cutoff,
    contrast_overlap,
    interlacing_bounds,
    preprojection_average,
    shared_specific_family,
    shared_specific_spectrum,
    spectral_overlap,
)
from diagatt.theory.risk import (
    BalancedRates,
    ExcessRisk,
    balanced_rates,
    excess_risk_rate,
    parameter_count,
    samples_needed,
)
from diagatt.theory.separators import (
    SeparatingMatrix,
    second_moment_separator,
    single_head_envelope_separator,
    single_head_separator,
    single_head_subspace_separator,
)
from diagatt.theory.start import best_separators, separating_start
from diagatt.theory.whitening import SeparationError, informative_subspace

__all__ = [
    "BalancedRates",
    "Condition",
    "Diagnosis",
    "ExcessRisk",
    "GrowthReport",
    "HeadDiagnosis",
    "HeadOverlap",
    "HeadSeparation",
    "LocalizationGuarantee",
    "Moments",
    "MultiHeadSeparation",
    "SeparatingMatrix",
    "SeparationError",
    "SpectralOverlap",
    "TemperatureInterval",
    "analytic_family",
    "analytic_overlap",
    "balanced_rates",
    "best_separators",
    "class_moments",
    "class_specific_cutoff",
    "contrast_overlap",
    "diagnose",
    "envelope",
    "excess_risk_rate",
    "expected_score",
    "gaussian_radius",
    "growth_conditions",
    "hanson_wright_tail",
    "informative_subspace",
    "interlacing_bounds",
    "localization_guarantee",
    "moment_radius",
    "multi_head_envelope_separators",
    "multi_head_separators",
    "multi_head_subspace_separators",
    "parameter_count",
    "preprojection_average",
    "samples_needed",
    "score_gap",
    "score_variance",
    "second_moment_separator",
    "separating_start",
    "shared_specific_family",
    "shared_specific_spectrum",
    "single_head_envelope_separator",
    "single_head_separator",
    "single_head_subspace_separator",
    "softmax_error_bound",
    "spectral_overlap",
    "subgaussian_radius",
    "sufficient_dimension",
    "sufficient_gap",
    "temperature_interval",
]

check_arguments(globals())
