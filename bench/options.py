"""What the command lines of all benches share: `--json` and `--small`."""

from argparse import ArgumentParser, Namespace
from typing import Any


def parsed(parser: ArgumentParser, **small: Any) -> Namespace:
    """The options given, among them `json`.

    Args:
        parser: has the bench's own options.
        small: values of those options that take seconds, by name. `--small` makes them the
            defaults: it shows that a bench works, its figures mean nothing.
    """
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--small", action="store_true", help="only see whether it works: the figures mean nothing"
    )
    if parser.parse_args().small:
        parser.set_defaults(**small)
    return parser.parse_args()
