"""What a site should know of a Slurm before it lets Outrider watch it."""

from collections.abc import Iterator

from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.acting.helper.client import HelperClient
from outrider_adapters.slurm.commands import SlurmCommands
from outrider_adapters.slurm.partitions import settings_of, shown_for_s
from outrider_adapters.slurm.rights import changes_nothing, hidden_from_us
from outrider_adapters.slurm.settings import SlurmSettings

Finding = tuple[str, str, str, str]
"""What, state (ok, warn, fail), what was found, and a remedy: as ``outrider doctor`` lists it."""


def diagnosed(commands: SlurmCommands, settings: SlurmSettings) -> Iterator[Finding]:
    """Who answers, what may be seen and changed, and how jobs that leave unseen are known."""
    try:
        config = settings_of(commands.run("scontrol", "show", "config"))
        rows = commands.run("squeue", "-a", "-h", "-o", "%A").split()
        nodes = commands.run("sinfo", "-a", "-h", "-N", "-o", "%N").split()
        federation = commands.run("scontrol", "show", "federation").strip()
    except CommandError as error:
        remedy = 'start slurmctld, or name its configuration: config = "/etc/slurm/slurm.conf"'
        yield "controller", "fail", str(error), remedy
        return
    version = config.get("SLURM_VERSION", "unknown")
    cluster = config.get("ClusterName", "?")
    found = f"Slurm {version}, cluster {cluster}: {len(rows)} rows of jobs, {len(set(nodes))} nodes"
    yield "controller", "ok", found, ""
    if federation.startswith("Federation:"):
        yield "federation", "fail", federation.split("\n")[0], "follow a dump of sacct instead"
    if hidden := hidden_from_us(commands, config):
        found, _, remedy = hidden.partition("; right would be: ")
        yield "rights", "fail", found, remedy
    else:
        yield "rights", "ok", f"PrivateData={config.get('PrivateData', 'none')}", ""
    yield _acting(commands, config, settings)
    yield _accounting(config)


def _acting(commands: SlurmCommands, config: dict[str, str], settings: SlurmSettings) -> Finding:
    if settings.helper is not None:
        try:
            HelperClient(settings.helper, settings.answer_within_s).check()
        except CommandError as error:
            found, _, remedy = str(error).partition("; right would be: ")
            return "acting", "fail", found, remedy
        found = f"other users' jobs may be changed by the helper at {settings.helper}"
        return "acting", "ok", found, ""
    if why := changes_nothing(commands, config):
        return "acting", "ok", f"enough for the modes observe and shadow alone: {why}", ""
    return "acting", "ok", "other users' jobs may be changed in the modes canary and active", ""


def _accounting(config: dict[str, str]) -> Finding:
    storage = config.get("AccountingStorageType", "accounting_storage/none")
    if storage.endswith("slurmdbd"):
        return "accounting", "ok", "sacct tells of jobs that left unseen", ""
    found = (
        "no slurmdbd: jobs that end while Outrider does not look for more than "
        f"{shown_for_s(config):g} s (MinJobAge) count as removed"
    )
    remedy = "restart Outrider within that time, or let Slurm keep its accounting"
    return "accounting", "warn", found, remedy
