"""The part of an exposition line before its value: the same in both formats, made once."""

from collections.abc import Iterable

from outrider.service.metrics.declarations import Kind, Metric


def escape_value(value: str) -> str:
    r"""A label value as both formats spell it.

    Bytes of a host's name that were no Unicode text (surrogates) are spelled ``\udc..``.
    """
    text = value.encode("utf-8", "backslashreplace").decode("utf-8")
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def number_prefix(metric: Metric, values: Iterable[str]) -> str:
    """Of the one line of a counter, gauge, state or fact."""
    return _prefix(metric.full_name, _pairs(metric, values))


def spread_prefixes(metric: Metric, values: Iterable[str]) -> tuple[str, ...]:
    """Of a histogram's or summary's lines: its buckets, if it has any, then count, then sum."""
    pairs = _pairs(metric, values)
    name = metric.full_name
    lines = []
    if metric.kind is Kind.HISTOGRAM:
        bounds = [*(repr(float(bound)) for bound in metric.bounds), "+Inf"]
        lines = [_prefix(f"{name}_bucket", [*pairs, f'le="{bound}"']) for bound in bounds]
    return (*lines, _prefix(f"{name}_count", pairs), _prefix(f"{name}_sum", pairs))


def _pairs(metric: Metric, values: Iterable[str]) -> list[str]:
    named = zip(metric.labels, values, strict=True)
    return [f'{label}="{escape_value(value)}"' for label, value in named]


def _prefix(name: str, pairs: list[str]) -> str:
    return f"{name}{{{','.join(pairs)}}} " if pairs else f"{name} "
