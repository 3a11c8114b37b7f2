"""Tests of the Grafana dashboards: valid queries, and data for them from a real Prometheus."""
