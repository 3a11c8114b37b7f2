"""The CPUs that a configuration declares for the machines of a cluster."""

from pathlib import Path

import pytest

from outrider.model.errors import ConfigurationError
from outrider.service.config.loaded import load_config


def written(folder: Path, cpus: str) -> Path:
    path = folder / "outrider.toml"
    path.write_text(
        f'[clusters.compute]\nmatch = ["node*"]\n{cpus}\n'
        '[adapters.logtail]\npaths = ["/var/log/EventLog"]\n'
    )
    return path


def test_machines_of_a_cluster_have_the_cpus_that_its_table_says(tmp_path: Path) -> None:
    loaded = load_config(written(tmp_path, "cpus = 64"))
    assert loaded.describe_machine("node7").cpus == 64
    assert loaded.describe_machine("other").cpus == 1
    assert load_config(written(tmp_path, "")).describe_machine("node7").cpus == 1


@pytest.mark.parametrize("cpus", ["1", "0", "-4", "2.5", '"many"', "10000000"])
def test_other_numbers_of_cpus_are_refused_by_name(tmp_path: Path, cpus: str) -> None:
    with pytest.raises(ConfigurationError, match="cpus"):
        load_config(written(tmp_path, f"cpus = {cpus}"))
