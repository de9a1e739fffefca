"""Calibration and proper scores of an Evaluation."""

from __future__ import annotations

from numpy.typing import ArrayLike

from dask_uncert.formulas import calibration, isotonic, scoring_rules
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.summaries.calibration import Bins
from dask_uncert.summaries.evaluation import Evaluation, class_position


@shared_sections
def expected_calibration_error(evaluation: Evaluation) -> float:
    """Return the expected calibration error (ECE) of the predicted class, over the job's bins.

    {Parameters: evaluation}

    {Returns: calibration error}

    References
    ----------
    [A22], equation (13).

    {Examples: three pixels}
    >>> round(du.expected_calibration_error(evaluation), 4)
    0.3
    """
    tallies = evaluation.stated
    return float(calibration.expected_calibration_error(*tallies.binned(tallies.fine)))


@shared_sections
def maximum_calibration_error(evaluation: Evaluation) -> float:
    """Return the maximum calibration error: the largest gap between accuracy and mean confidence of a bin.

    {Parameters: evaluation}

    {Returns: calibration error}

    {Examples: three pixels}
    >>> round(du.maximum_calibration_error(evaluation), 4)
    0.6
    """
    tallies = evaluation.stated
    return float(calibration.maximum_calibration_error(*tallies.binned(tallies.fine)))


@shared_sections
def classwise_calibration_error(evaluation: Evaluation) -> float:
    """Return the mean over classes of the calibration error of each class against the rest.

    {Parameters: evaluation}

    {Returns: calibration error}

    {Examples: three pixels}
    >>> round(du.classwise_calibration_error(evaluation), 4)
    0.3
    """
    tallies = evaluation.stated
    return float(calibration.classwise_calibration_error(*tallies.binned(tallies.fine_by_class)))


@shared_sections
def equal_mass_calibration_error(evaluation: Evaluation) -> float:
    """Return the calibration error over bins of about equal numbers of pixels.

    {Parameters: evaluation}

    {Returns: calibration error}

    Notes
    -----
    There are as many bins as the job asks for, merged from fine bins of at most .001. `results.json` says how far that may
    be off bins cut between pixels.

    {Examples: three pixels}
    >>> round(du.equal_mass_calibration_error(evaluation), 4)
    0.3
    """
    tallies = evaluation.stated
    return float(calibration.equal_mass_calibration_error(*tallies.fine, tallies.bins))


def equal_mass_bound(evaluation: Evaluation) -> float:
    """Return how far the equal-mass calibration error may be off that of bins cut between pixels."""
    tallies = evaluation.stated
    n, hits, _ = tallies.fine
    return float(calibration.equal_mass_bound(n, hits, tallies.edges, tallies.bins))


@shared_sections
def debiased_calibration_error(evaluation: Evaluation) -> float:
    """Return the squared calibration error of the predicted class, without its bias towards large values.

    {Parameters: evaluation}

    Returns
    -------
    float
        The mean squared gap between accuracy and confidence over the job's bins, less what chance alone adds. At most
        1, best 0, also below 0; NaN where no bin has two pixels.

    References
    ----------
    Kumar, Liang and Ma, NeurIPS 2019.

    {Examples: three pixels}
    >>> du.debiased_calibration_error(evaluation)
    nan
    """
    tallies = evaluation.stated
    return float(calibration.squared_calibration_error(*tallies.binned(tallies.fine)).debiased)


@shared_sections
def corp(evaluation: Evaluation, class_name: str | None = None) -> isotonic.Corp:
    """Return the Brier score of "is the decision right?" in parts that no choice of bins changes (CORP).

    {Parameters: evaluation}
    class_name : str, optional
        A class, for "is it this class?" instead.

    Returns
    -------
    Corp
        ``score``, ``miscalibration`` and ``discrimination``, each with ``value``, ``low`` and ``high``, and
        ``uncertainty``: score = miscalibration - discrimination + uncertainty. NaN where no pixel is counted.

    {Raises: unknown class}

    Notes
    -----
    Values are of fine bins of at most .001; the bounds hold for the pixels themselves.

    References
    ----------
    Dimitriadis, Gneiting and Jordan, PNAS 118, 2021.

    {Examples: three pixels}
    >>> round(float(du.corp(evaluation).miscalibration.value), 4)
    0.1367
    """
    tallies = evaluation.stated
    fine = tallies.fine
    if class_name is not None:
        fine = Bins(*(part[class_position(evaluation, class_name)] for part in tallies.fine_by_class))
    return isotonic.corp(*fine, tallies.edges)


@shared_sections
def brier(evaluation: Evaluation) -> dict[str, float]:
    """Return the Brier score, summed over classes, and its parts.

    {Parameters: evaluation}

    Returns
    -------
    dict of str to float
        ``score`` in [0, 2], best 0, and ``reliability``, ``resolution``, ``uncertainty``, ``within_bins``.

    Notes
    -----
    ``score = reliability - resolution + uncertainty + within_bins``, over fine bins of at most .001.

    {Examples: three pixels}
    >>> round(du.brier(evaluation)["score"], 4)
    0.2733
    """
    tallies = evaluation.stated
    parts = scoring_rules.brier_decomposition(*tallies.fine_by_class, tallies.squared_error)
    return {name: float(value) for name, value in parts.items()}


@shared_sections
def negative_log_likelihood(evaluation: Evaluation) -> dict[str, float]:
    """Return the negative log likelihood: the mean of -ln p of the true class, in nats.

    {Parameters: evaluation}

    Returns
    -------
    dict of str to float
        ``value`` in [0, inf], best 0, inf where a true class got probability 0; ``infinite``, the number of
        these pixels; ``finite``, the mean over the others.

    {Examples: three pixels}
    >>> round(du.negative_log_likelihood(evaluation)["value"], 4)
    0.4149
    """
    tallies = evaluation.stated
    parts = scoring_rules.negative_log_likelihood(tallies.fine.number.sum(), tallies.log_loss, tallies.infinite)
    return {name: value.item() for name, value in parts.items()}


@shared_sections
def windows_curve(
    evaluation: Evaluation, class_name: str | int, points: ArrayLike, delta: float = 0.05
) -> tuple[Counts, Floats]:
    """Return how often a class is true where its probability is close to each point.

    {Parameters: evaluation}
    class_name : str or int
        Name of the class, or its position in the class table.
    points : array_like, (P,)
        Probabilities p, the centres of the windows.
    delta : float, default 0.05
        Half the width of a window, [p - delta, p + delta].

    Returns
    -------
    n : ndarray of int64, (P,)
        Pixels in each window.
    share : ndarray of float64, (P,)
        Share of them that are of the class; NaN where a window is empty.

    {Raises: unknown class}

    References
    ----------
    [J22], section VII.

    {Examples: three pixels}
    >>> [part.tolist() for part in du.windows_curve(evaluation, "1", [0.1, 0.4], 0.05)]
    [[1, 1], [0.0, 1.0]]
    """
    tallies = evaluation.stated
    number = class_position(evaluation, class_name) if isinstance(class_name, str) else class_name
    n, positives, _ = tallies.fine_by_class
    return calibration.windows_curve(n[number], positives[number], tallies.edges, points, delta)


@shared_sections
def reliability(evaluation: Evaluation) -> calibration.Reliability:
    """Return mean confidence and accuracy of every calibration bin.

    {Parameters: evaluation}

    Returns
    -------
    Reliability
        Two arrays (bins,), ``confidence`` and ``accuracy``; NaN in empty bins.

    {Examples: three pixels}
    >>> du.reliability(evaluation).accuracy[-3:].tolist()
    [nan, 1.0, nan]
    """
    tallies = evaluation.stated
    return calibration.reliability(*tallies.binned(tallies.fine))
