"""The Grafana dashboard as code; `make docs` writes dashboards/grafana/outrider-site.json."""
