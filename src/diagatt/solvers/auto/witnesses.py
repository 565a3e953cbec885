"""The existence test of the default, from the out-of-fold fits of its contest."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from diagatt.attention.blend import LEAST_PROBABILITY
from diagatt.solvers.auto.contest import Contest, Entry
from diagatt.solvers.existence import Existence, existence_test, together
from diagatt.solvers.outlying_rows import outlying_row_test

# A gap of so much in the summed log score divides the weight of an entry by e.
TEMPERATURE = 2.0
# Shares of the level for witnesses, and for entries that were chosen by their scores in the first
# folds, of what the test from rows alone leaves.
NAMED_SHARE, CHOSEN_SHARE, DECIDING_FOLDS = 0.6, 0.4, 2


def contest_existence(contest: Contest, entries: Sequence[Entry]) -> Existence | None:
    """Test whether single rows predict more than their mean does; None if no entry attends.

    The default's witnesses, which are fixed beforehand, are averaged and judged on all samples.
    Entries that did well in the first folds are judged on the other folds only. Contestants that
    the user named are weighted by their scores in the other folds, as are fits without attention.
    """
    attending = [e for e in entries if e.contestant.attends and _is_complete(e)]
    if not attending:
        return None
    without = [e for e in entries if not e.contestant.attends and _is_complete(e)]
    # The largest and the smallest entry come from single rows, and so do most spreads: what they
    # explain does not speak against a row of interest.
    without = [e for e in without if not {"min", "max", "spread"} & set(e.contestant.features)]
    pooled = _mean_predictor(contest, without, _weights(contest, without)) if without else None
    outlying, share = outlying_row_test(contest.samples, pooled, contest.seed)
    witnesses = [e for e in attending if e.contestant.is_witness]
    if not witnesses:
        eta = _mean_predictor(contest, attending, _weights(contest, attending))
        judged = existence_test(contest.samples, contest.folds, eta, pooled)
        return together([(judged, 1 - share), (outlying, share)])
    n = contest.samples.n_samples
    equal = torch.full((n, len(witnesses)), 1 / len(witnesses), dtype=torch.float64)
    eta = _mean_predictor(contest, witnesses, equal)
    named = existence_test(contest.samples, contest.folds, eta, pooled)
    chosen = _of_the_chosen(contest, attending, pooled)
    of_fits = [(named, NAMED_SHARE * (1 - share)), (chosen, CHOSEN_SHARE * (1 - share))]
    return together([*of_fits, (outlying, share)])


def _of_the_chosen(
    contest: Contest, attending: Sequence[Entry], pooled: Tensor | None
) -> Existence | None:
    """Test the entries that are left on the folds that did not decide about them."""
    chosen = [e for e in attending if e.is_alive and not e.contestant.features]
    later = contest.folds >= DECIDING_FOLDS
    if not chosen or contest.n_folds < DECIDING_FOLDS + 2:
        return None
    scores = torch.tensor([_score(contest, entry, ~later) for entry in chosen])
    weights = torch.softmax(scores / TEMPERATURE, dim=0).double()
    n = contest.samples.n_samples
    eta = _mean_predictor(contest, chosen, weights.expand(n, -1))
    samples = contest.samples.take(torch.nonzero(later)[:, 0])
    folds = contest.folds[later] - DECIDING_FOLDS
    return existence_test(samples, folds, eta[later], None if pooled is None else pooled[later])


def _is_complete(entry: Entry) -> bool:
    return bool(torch.isfinite(entry.z).all())


def _weights(contest: Contest, entries: Sequence[Entry]) -> Tensor:
    """Return weights of entries for each sample, from their scores in the other folds, (n, M)."""
    n = contest.samples.n_samples
    weights = torch.empty(n, len(entries), dtype=torch.float64)
    for fold in range(contest.n_folds):
        others = contest.folds != fold
        scores = torch.tensor([_score(contest, entry, others) for entry in entries])
        weights[~others] = torch.softmax(scores / TEMPERATURE, dim=0).double()
    return weights


def _score(contest: Contest, entry: Entry, seen: Tensor) -> float:
    """Return the log density of some samples around the entry's means."""
    samples, family = contest.samples, contest.samples.family
    y, w, z = (t[seen].double() for t in (samples.y, samples.weights, entry.z))
    phi = 1.0
    if family.has_dispersion:
        phi = max(float((w * family.unit_dispersion(y, z)).sum() / w.sum()), 1e-12)
    return float((w * family.log_density(y, z, phi)).sum())


def _mean_predictor(contest: Contest, entries: Sequence[Entry], weights: Tensor) -> Tensor:
    """Return the predictor of the weighted mean response, (n, K)."""
    family = contest.samples.family
    means = torch.stack([family.inverse_link(e.z.double()) for e in entries], dim=1)  # (n, M, K)
    mean = (weights.to(means)[:, :, None] * means).sum(dim=1)
    if family.classifies:
        mean = mean.clamp(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    z = family.link(mean)
    return z if bool(torch.isfinite(z).all()) else mean
