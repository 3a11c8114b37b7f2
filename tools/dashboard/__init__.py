"""The Grafana dashboards as code; `make docs` writes what stands in dashboards/grafana."""
