"""Base of adapters that poll a batch system by blocking calls."""

from outrider_adapters.polling.adapter import PATIENCE_S, PollingAdapter, StartAt
from outrider_adapters.polling.commands import Asking, CommandError, Commands

__all__ = ["PATIENCE_S", "Asking", "CommandError", "Commands", "PollingAdapter", "StartAt"]
