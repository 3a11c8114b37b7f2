"""Student's t, for intervals of few values."""


def student_quantile(probability: float, freedom: float) -> float:
    """The value that Student's t exceeds with one minus this probability.

    Args:
        probability: between 0 and 1.
        freedom: degrees of freedom, above 0.

    >>> round(student_quantile(0.975, 9), 3)
    2.262
    """
    # not above: loading it is a quarter of a daemon's start, and a daemon rarely asks
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))
