"""Adapters that ask a batch system again and again, by calls that block."""

from outrider_adapters.polling.adapter import PollingAdapter
from outrider_adapters.polling.asking import Asking
from outrider_adapters.polling.calling import PATIENCE_S
from outrider_adapters.polling.commands import CommandError, Commands

__all__ = ["PATIENCE_S", "Asking", "CommandError", "Commands", "PollingAdapter"]
