"""The Grafana dashboard: what it asks is asked well, and a real Prometheus has an answer."""
