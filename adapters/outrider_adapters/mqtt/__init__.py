"""MQTT: owners, machine states and power readings that lab machines and meters publish."""

from outrider_adapters.mqtt.adapter import MqttAdapter
from outrider_adapters.mqtt.settings import MeterSettings, MqttSettings

__all__ = ["MeterSettings", "MqttAdapter", "MqttSettings"]
