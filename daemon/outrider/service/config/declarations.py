"""The configuration of the daemon: one TOML file, checked whole before anything starts."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from outrider.model.errors import ConfigurationError
from outrider.model.modes import Discipline
from outrider.model.settings import toml_text
from outrider.service.config.optional_tables import ActingSettings, PublishSettings, TwinSettings

SOCKET_NAME: Final = "outrider.sock"


class ClusterSettings(msgspec.Struct, frozen=True):
    """Site knowledge of a cluster that its batch system does not report."""

    match: Annotated[
        list[str],
        Meta(
            description="Machine names (shell patterns) that belong to this cluster.",
            examples=[["lab-*"]],
        ),
    ] = []
    cpus: Annotated[
        Annotated[int, Meta(ge=2, le=1_000_000)] | None,
        Meta(
            description="CPUs of each machine that is only known from its jobs, 2 or more. Unset: "
            "the most CPUs seen in use at one time. A job over several machines, or a forged "
            "record, can make that too many.",
        ),
    ] = None
    active_w: Annotated[
        float | None, Meta(description="Watts of a busy machine. Unset: its energy is unknown.")
    ] = None
    idle_w: Annotated[float | None, Meta(description="Watts of an idle machine.")] = None
    sleep_w: Annotated[float | None, Meta(description="Watts of a sleeping machine.")] = None
    open: Annotated[
        str, Meta(description='Opening hours for owners: "mon-fri 09:00-17:00" or "always".')
    ] = "always"


class Config(msgspec.Struct, frozen=True):
    """The daemon's own settings. Adapters and policies declare theirs."""

    mode: Annotated[
        Literal["observe", "shadow", "canary", "active"],
        Meta(
            description="observe: only watch and measure. shadow: also record what the policies "
            "would do. Neither ever changes anything in the batch system. canary: apply the "
            "policy's decisions to the jobs that [acting] names. active: to all jobs. Changes "
            "expire automatically unless they are renewed."
        ),
    ] = "shadow"
    state_dir: Annotated[
        str,
        Meta(
            description="Folder of the journal and snapshots. systemd's StateDirectory takes "
            "precedence."
        ),
    ] = "/var/lib/outrider"
    listen: Annotated[
        str,
        Meta(
            description="Address and port of the status page, the API and /metrics. Port 0 takes "
            "a free one. An address beyond loopback needs tls_cert, tls_key and token_file."
        ),
    ] = "127.0.0.1:9690"
    tls_cert: Annotated[
        str | None,
        Meta(description="PEM file of the certificate.", examples=["/etc/outrider/cert.pem"]),
    ] = None
    tls_key: Annotated[
        str | None,
        Meta(description="PEM file of its private key.", examples=["/etc/outrider/key.pem"]),
    ] = None
    token_file: Annotated[
        str | None,
        Meta(
            description="File with the token that clients must send as Bearer. Unset: every client "
            "on loopback may read; the token that `outrider token` makes in state_dir shows "
            "users' names.",
            examples=["/etc/outrider/token"],
        ),
    ] = None
    socket: Annotated[
        str | None,
        Meta(
            description="Path of a Unix socket that serves the same as `listen`, with users' "
            "names, to root, the daemon's own user and members of socket_group, without a token. "
            "Other users of this host see why their own jobs wait, unless there is a token_file. "
            "Unset: under systemd it is in the service's RuntimeDirectory (with the shipped unit "
            "/run/outrider/outrider.sock), else a socket in state_dir, for the daemon's own "
            "user.",
            examples=["/run/outrider/outrider.sock"],
        ),
    ] = None
    socket_group: Annotated[
        str,
        Meta(
            min_length=1,
            description="Group whose members see users' names over the socket. If the group does "
            "not exist, only root and the daemon's own user do.",
        ),
    ] = "outrider"
    admin_group: Annotated[
        str,
        Meta(
            min_length=1,
            description="Group whose members may also send commands over the socket (`outrider "
            "mode`, `promote`, `release`), as root and the daemon's own user may.",
        ),
    ] = "outrider-admin"
    host_names: Annotated[
        list[str],
        Meta(
            description="Further host names that clients may use, besides localhost, this host's "
            "own name and the address of `listen`. Other names in `Host` are refused, because a "
            "web page elsewhere could make its own name resolve to this host (DNS rebinding).",
            examples=[["outrider.example.org"]],
        ),
    ] = []
    show_users: Annotated[
        Literal["authorised", "everybody", "nobody"],
        Meta(
            description="Which clients see users' names: those that use the socket or send the "
            "token (authorised), all, or none. Other clients see short pseudonyms."
        ),
    ] = "authorised"
    timezone: Annotated[
        str, Meta(description="Zone of the site's wall clock; hours of the day are learned in it.")
    ] = "UTC"
    seed: Annotated[
        int, Meta(ge=0, description="Random seed: the same events give the same journal.")
    ] = 0
    reconsider_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Decision epoch: seconds after which a job that a policy keeps queued is "
            "decided again, unless the policy sets its own.",
        ),
    ] = 3600.0
    reboot: (
        Annotated[
            str,
            Meta(
                description="Local time of a nightly reboot, HH:MM. Policies that use it start "
                "nothing that the reboot would end. Unset: there is none.",
                examples=["03:00"],
            ),
        ]
        | None
    ) = None
    stale_after_s: Annotated[
        float,
        Meta(gt=0, description="Input older than this is stale: Outrider does not act on it."),
    ] = 300.0
    max_starts_per_minute: Annotated[
        float, Meta(gt=0, description="Most starts that the gate lets through in a minute.")
    ] = 600.0
    snapshot_every_s: Annotated[
        float, Meta(gt=0, description="Seconds between two snapshots of the learned state.")
    ] = 300.0
    retention_days: Annotated[
        float, Meta(gt=0, description="Days for which the journal keeps decisions and events.")
    ] = 90.0
    runs_retention_days: Annotated[
        float,
        Meta(
            gt=0,
            description="Days for which the journal keeps one short row of each run, without its "
            "user: to look up the same week a year ago.",
        ),
    ] = 400.0
    journal_max_bytes: Annotated[
        int,
        Meta(
            ge=1_000_000,
            description="Most bytes that the journal may take. Beyond that, its oldest rows are "
            "dropped before retention_days are over, and the status reports it.",
        ),
    ] = 10_000_000_000
    pseudonymise_users: Annotated[
        bool,
        Meta(description="Store only keyed pseudonyms of users. Owners' names are never stored."),
    ] = False
    log_format: Annotated[
        Literal["auto", "console", "json"],
        Meta(description="auto: short lines for systemd's journal, readable ones on a terminal."),
    ] = "auto"
    shares: Annotated[
        dict[str, float],
        Meta(description="Fair shares by VO, summing to 1. Empty: equal shares."),
    ] = {}
    utilities: Annotated[
        dict[str, dict[str, Any]],
        Meta(
            description="Time utility functions by job class: `shape` (constant, step, soft, "
            "interactive, batch, linear, convex, concave, rising) and its settings. Utility-based "
            "policies decide by the utility of each class. Unset: interactive and batch."
        ),
    ] = {}
    estimator: (
        Annotated[
            str,
            Meta(
                description="Plugin that predicts how long a job will run, in place of its user's "
                "request: learned, last_two. Unset: the user's request.",
                examples=["learned"],
            ),
        ]
        | None
    ) = None
    discipline: (
        Annotated[
            Discipline,
            Meta(
                description="Which jobs may start before a job that does not fit now. first_fit: "
                "all. strict: none. easy: those that do not delay it, by their estimates. "
                "easy_sjbf: the same, tried shortest estimate first. "
                "conservative: those that delay no job before them. Unset: the discipline that "
                "the adapter reports of its batch system, else first_fit."
            ),
        ]
        | None
    ) = None
    clusters: Annotated[
        dict[str, ClusterSettings],
        Meta(description="Clusters by name: their machines, and the watts that these draw."),
    ] = {}
    acting: Annotated[
        ActingSettings | None,
        Meta(
            description="Limits of what the modes canary and active change: see `[acting]`. Unset: "
            "its defaults."
        ),
    ] = None
    mqtt: Annotated[
        PublishSettings | None,
        Meta(description="Broker to publish to: see `[mqtt]`. Unset: nothing is published."),
    ] = None
    twin: Annotated[
        TwinSettings | None,
        Meta(
            description="How often the shadow twin estimates what each policy would have cost: see "
            "`[twin]`. Unset: its defaults."
        ),
    ] = None
    adapters: Annotated[
        dict[str, dict[str, Any]],
        Meta(description="Adapters by label; `type` names the plugin (default: the label)."),
    ] = {}
    policies: Annotated[
        dict[str, dict[str, Any]],
        Meta(description="Policies by name, with their settings; each is a shadow candidate."),
    ] = {}


DEFAULT_POLICIES: Mapping[str, dict[str, Any]] = {"bandit": {}}


def policies_of(config: Config) -> Mapping[str, dict[str, Any]]:
    """Return the policies with their settings; the default one if none is configured."""
    return config.policies or DEFAULT_POLICIES


def acting_of(config: Config) -> ActingSettings:
    """Return the settings of ``[acting]``; the defaults if the table is missing."""
    return config.acting or ActingSettings()


def twin_of(config: Config) -> TwinSettings:
    """Return the settings of ``[twin]``; the defaults if the table is missing."""
    return config.twin or TwinSettings()


def adapter_of(label: str, settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the plugin name and the settings of an adapter's table."""
    options = dict(settings)
    return str(options.pop("type", label)), options


def listen_address(config: Config) -> tuple[str, int]:
    """Return host and port of `listen`. Raises `ConfigurationError`."""
    host, colon, port = config.listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ConfigurationError(
            f'"listen" = {toml_text(config.listen)}: expected an address and port, as in '
            'listen = "127.0.0.1:9690"'
        )
    return host.strip("[]") or "127.0.0.1", int(port)


def socket_path(config: Config) -> Path | None:
    """Return the path of the host's socket: configured, or in systemd's folder, else None."""
    if config.socket is not None:
        return Path(config.socket)
    folder = os.environ.get("RUNTIME_DIRECTORY", "").split(":")[0]
    return Path(folder) / SOCKET_NAME if folder else None
