"""Section 7.5: history, initial and rising epsilon, and local knowledge."""

from collections.abc import Iterator
from statistics import fmean

from outrider_lab.papers.mcgough.grid import OPTIONS, Size, history, paper_bandit
from outrider_lab.papers.mcgough.rows import Year
from outrider_lab.papers.mcgough.year_statistics import NO_EFFECT, of
from outrider_lab.reporting.claims import Claim
from outrider_lab.reporting.judging import Stated, ratio


def claims_of_options(size: Size) -> Iterator[Stated[Year]]:
    """History, initial and rising epsilon, and local knowledge."""
    whole = paper_bandit()
    total, mean = "total_mwh", "overhead_min.mean"
    shortest = history(size, "plain")[0]
    n = size.histories[0]
    yield Stated(
        Claim(
            "a short history saves overhead",
            "7.5.1, figure 18",
            "below 1",
            f"mean overhead with the last {n} rewards over that with all",
            high=1.0,
        ),
        ratio(of(shortest, mean), of(whole, mean)),
    )
    yield Stated(
        Claim(
            "a short history uses more energy",
            "7.5.1, figure 18",
            "above 1",
            f"energy with the last {n} rewards over that with all",
            1.0,
        ),
        ratio(of(shortest, total), of(whole, total)),
    )
    yield Stated(
        Claim(
            "plain weights use less energy than gaussian ones",
            "7.5.1, figure 19",
            "less",
            "mean over the histories of gaussian energy over plain",
            1.0,
        ),
        lambda year: fmean(
            of(gaussian, total)(year) / of(plain, total)(year)
            for plain, gaussian in zip(
                history(size, "plain"), history(size, "gaussian"), strict=True
            )
        ),
    )
    where = ("7.5.2", "7.5.2", "7.5.3", "7.5.4")
    for (name, settings), section in zip(OPTIONS.items(), where, strict=True):
        for figure, word in ((total, "energy"), (mean, "mean overhead")):
            yield Stated(
                Claim(
                    f"{name}: no effect on the {word}",
                    section,
                    "no statistical difference",
                    f"{word} with it over that without, epsilon .1, sigma .8",
                    1 - NO_EFFECT,
                    1 + NO_EFFECT,
                ),
                ratio(of(paper_bandit(**settings), figure), of(whole, figure)),
            )
