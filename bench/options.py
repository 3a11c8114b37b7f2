"""Options that all benches share: `--json` and `--small`."""

from argparse import ArgumentParser, Namespace
from typing import Any


def parsed(parser: ArgumentParser, **small: Any) -> Namespace:
    """Return the parsed options, including `json`.

    Args:
        parser: parser with the bench's own options.
        small: values of options with which the bench takes seconds, by name. `--small` makes them
            the defaults: it shows that a bench works, but its figures are meaningless.
    """
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--small", action="store_true", help="only check that it works; the figures are meaningless"
    )
    if parser.parse_args().small:
        parser.set_defaults(**small)
    return parser.parse_args()
