"""What the daemon publishes over MQTT: its mode and health, every decision, every eviction.

Nothing here can hold up the engine or the recording: the publisher reads the journal behind them.
"""
