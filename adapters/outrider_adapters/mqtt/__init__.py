"""The `mqtt` adapter: owners, machine states and power readings published over MQTT."""

from outrider_adapters.mqtt.adapter import MqttAdapter
from outrider_adapters.mqtt.settings import MeterSettings, MqttSettings

__all__ = ["MeterSettings", "MqttAdapter", "MqttSettings"]
