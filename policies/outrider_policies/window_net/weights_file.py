"""Files of weights: JSON that a training writes and the policy reads. No code is in them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
from msgspec import Meta

from outrider.api import WINDOW_FEATURES, ConfigurationError
from outrider_policies.window_net.net import Layer, Net

_RIGHT: Final = "right would be a file that outrider_policies.window_net.write_net wrote"


class _Layer(msgspec.Struct, forbid_unknown_fields=True):
    weights: list[list[float]]
    bias: list[float]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file; `trained` says where it comes from, and is for people."""

    kind: Literal["outrider.window_net"]
    version: Literal[1]
    window: Annotated[int, Meta(ge=2, le=4096)]
    features: list[str]
    layers: Annotated[list[_Layer], Meta(min_length=1)]
    trained: dict[str, Any] = {}


def write_net(net: Net, path: Path, trained: Mapping[str, Any]) -> None:
    """Write a net.

    Args:
        net: what was trained.
        path: of the file.
        trained: how, as plain data.

    Raises:
        ConfigurationError: it cannot be written.
    """
    layers = [_Layer(layer.weights.tolist(), layer.bias.tolist()) for layer in net.layers]
    content = _File(
        "outrider.window_net", 1, net.window, list(WINDOW_FEATURES), layers, dict(trained)
    )
    try:
        path.write_bytes(msgspec.json.encode(content) + b"\n")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be written: {error.strerror}") from error


def net_of_text(text: bytes, where: str) -> Net:
    """The net of a file's content.

    Args:
        text: of the file.
        where: names the file in errors.

    Raises:
        ConfigurationError: it is no such file, was trained on other features, or its weights do
            not fit each other; the message names place, value and what would be right.
    """
    try:
        told = msgspec.json.decode(text, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{where} is no file of weights: {error}; {_RIGHT}") from error
    if tuple(told.features) != WINDOW_FEATURES:
        raise ConfigurationError(
            f"{where} was trained on the features {', '.join(told.features)}; this Outrider has "
            f"{', '.join(WINDOW_FEATURES)}, so it has to be trained anew"
        )
    inputs, layers = len(WINDOW_FEATURES), []
    for number, layer in enumerate(told.layers):
        outputs = 1 if number == len(told.layers) - 1 else len(layer.bias)
        layers.append(_checked(layer, inputs, outputs, f"{where}: layers[{number}]"))
        inputs = outputs
    return Net(told.window, tuple(layers))


def _checked(layer: _Layer, inputs: int, outputs: int, where: str) -> Layer:
    rows = sorted({len(row) for row in layer.weights})
    if len(layer.weights) != inputs or rows != [outputs] or len(layer.bias) != outputs:
        raise ConfigurationError(
            f"{where} has {len(layer.weights)} rows of {rows} weights and a bias of "
            f"{len(layer.bias)}; right would be {inputs} rows of {outputs}, and a bias of {outputs}"
        )
    weights, bias = np.array(layer.weights), np.array(layer.bias)
    if not (np.isfinite(weights).all() and np.isfinite(bias).all()):
        raise ConfigurationError(f"{where} has a weight that is not finite; {_RIGHT}")
    return Layer(weights, bias)
