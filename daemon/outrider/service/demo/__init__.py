"""The demo: a simulated campus, an MQTT broker, and a journal of the campus's past."""
