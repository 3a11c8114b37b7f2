"""Views: functions from the daemon's core to plain data, which pages, metrics and MQTT show.

They ask nobody anything: every figure is one the core already holds.
"""
