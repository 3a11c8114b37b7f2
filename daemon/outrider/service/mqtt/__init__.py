"""MQTT publishing of the daemon's mode, its health, every decision and every eviction.

Nothing here can delay the engine or the recording: the publisher reads the journal behind them.
"""
