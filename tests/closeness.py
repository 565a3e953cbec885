"""How close two floating-point results must be: CONTRIBUTING.md says how tolerances are chosen."""

import numpy as np


def assert_equal_up_to_rounding(ours, theirs, operations=100):
    """Each entry agrees up to the rounding of so many operations on the largest entry.

    Sums and products in another order differ by a few epsilons of the largest term, not of the
    result: entries that cancel may differ in every digit of their own.
    """
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    kinds = [a.dtype for a in (ours, theirs) if a.dtype.kind == "f"]
    epsilon = max(np.finfo(kind).eps for kind in kinds)
    scale = np.abs(theirs).max(initial=0)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=operations * epsilon * scale)
