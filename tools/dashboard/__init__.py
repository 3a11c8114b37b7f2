"""The Grafana dashboards as code; `make docs` writes the files in dashboards/grafana."""
