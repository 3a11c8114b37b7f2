"""Adapters that ask a batch system again and again, by calls that block."""

from outrider_adapters.polling.adapter import PATIENCE_S, PollingAdapter, StartAt
from outrider_adapters.polling.commands import Asking, CommandError, Commands

__all__ = ["PATIENCE_S", "Asking", "CommandError", "Commands", "PollingAdapter", "StartAt"]
