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
    """What the site knows of a cluster that its batch system does not tell."""

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
            "as many as were seen in use at once, which a job over several machines, or a record "
            "that somebody made up, can make too many.",
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
    """The daemon's own settings. Adapters and policies bring theirs."""

    mode: Annotated[
        Literal["observe", "shadow", "canary", "active"],
        Meta(
            description="observe: only watch and measure. shadow: also record what the policies "
            "would do. Neither ever changes anything in the batch system. canary: carry out what "
            "the policy decides for the jobs that [acting] names. active: for all jobs. What is "
            "changed lapses by itself."
        ),
    ] = "shadow"
    state_dir: Annotated[
        str,
        Meta(description="Folder of journal and snapshots. systemd's StateDirectory wins."),
    ] = "/var/lib/outrider"
    listen: Annotated[
        str,
        Meta(
            description="Address and port of the status page, the API and /metrics. Port 0 takes "
            "a free one. Beyond loopback it needs tls_cert, tls_key and token_file."
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
            description="File with the token that clients must send as Bearer. Unset: on loopback "
            "everybody may look; the token that `outrider token` makes beside the journal shows "
            "users' names.",
            examples=["/etc/outrider/token"],
        ),
    ] = None
    socket: Annotated[
        str | None,
        Meta(
            description="Path of a Unix socket that shows the same as `listen`, with users' names, "
            "to root, the daemon's own user and members of socket_group; they need no token. "
            "Unset: under systemd it is in the service's RuntimeDirectory (with the shipped unit "
            "/run/outrider/outrider.sock), else there is none.",
            examples=["/run/outrider/outrider.sock"],
        ),
    ] = None
    socket_group: Annotated[
        str,
        Meta(
            min_length=1,
            description="The group that the socket is for. Where there is no such group, it is "
            "for root and the daemon's own user alone.",
        ),
    ] = "outrider"
    admin_group: Annotated[
        str,
        Meta(
            min_length=1,
            description="The group whose members may also command over the socket (`outrider "
            "mode`, `promote`, `release`), beside root and the daemon's own user.",
        ),
    ] = "outrider-admin"
    host_names: Annotated[
        list[str],
        Meta(
            description="Names under which clients ask, beside localhost, this host's own name "
            "and the address that is listened on: other names in `Host` are refused, because a web "
            "page elsewhere could have made its own name lead here.",
            examples=[["outrider.example.org"]],
        ),
    ] = []
    show_users: Annotated[
        Literal["authorised", "everybody", "nobody"],
        Meta(
            description="Who is shown users by their names: authorised: who comes over the socket "
            "or sends the token; everybody; nobody. To others users have short pseudonyms."
        ),
    ] = "authorised"
    timezone: Annotated[
        str, Meta(description="Zone of the site's wall clock; hours of the day are learned in it.")
    ] = "UTC"
    seed: Annotated[
        int, Meta(ge=0, description="Seed of all chance; the same events give the same ledger.")
    ] = 0
    reconsider_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Decision epoch: a job that a policy would keep queued is decided again "
            "after this, where the policy sets none of its own.",
        ),
    ] = 3600.0
    reboot: (
        Annotated[
            str,
            Meta(
                description="Local time of a nightly reboot, HH:MM. Policies that know it start "
                "nothing that it would cut off. Unset: there is none.",
                examples=["03:00"],
            ),
        ]
        | None
    ) = None
    stale_after_s: Annotated[
        float, Meta(gt=0, description="Input older than this is called stale; nothing acts on it.")
    ] = 300.0
    max_starts_per_minute: Annotated[
        float, Meta(gt=0, description="Budget of the gate: most starts it would carry out.")
    ] = 600.0
    snapshot_every_s: Annotated[
        float, Meta(gt=0, description="How often the learned state is written beside the journal.")
    ] = 300.0
    retention_days: Annotated[
        float, Meta(gt=0, description="How long decisions and events are kept in the journal.")
    ] = 90.0
    runs_retention_days: Annotated[
        float,
        Meta(
            gt=0,
            description="How long one short row of each run is kept, without its user: for the "
            "same week a year ago.",
        ),
    ] = 400.0
    journal_max_bytes: Annotated[
        int,
        Meta(
            ge=1_000_000,
            description="Most bytes that the journal may take. Beyond, its oldest rows are dropped "
            "before their time, and the status says so.",
        ),
    ] = 10_000_000_000
    pseudonymise_users: Annotated[
        bool,
        Meta(description="Keep only keyed pseudonyms of user names. Owners' names are never kept."),
    ] = False
    log_format: Annotated[
        Literal["auto", "console", "json"],
        Meta(description="auto: short lines for the journal, readable ones on a terminal."),
    ] = "auto"
    shares: Annotated[
        dict[str, float],
        Meta(description="Fair shares by VO, summing to 1. Empty: equal shares."),
    ] = {}
    utilities: Annotated[
        dict[str, dict[str, Any]],
        Meta(
            description="Time utility functions by job class: `shape` (constant, step, soft, "
            "interactive, batch, linear, convex, concave, rising) and its settings. What a "
            "class is worth decides what utility-based policies do. Unset: interactive and batch."
        ),
    ] = {}
    estimator: (
        Annotated[
            str,
            Meta(
                description="Plugin that says how long a job will run, in place of what its user "
                "asked for: learned, last_two. Unset: what its user asked for.",
                examples=["learned"],
            ),
        ]
        | None
    ) = None
    discipline: (
        Annotated[
            Discipline,
            Meta(
                description="Who may start before a job that does not fit now: first_fit: "
                "everybody; strict: nobody; easy: those that do not delay it, by their estimates; "
                "easy_sjbf: the same, tried shortest estimate first; "
                "conservative: those that delay none before them. Unset: what the batch system "
                "does, as far as its adapter knows, else first_fit."
            ),
        ]
        | None
    ) = None
    clusters: Annotated[
        dict[str, ClusterSettings],
        Meta(description="Clusters by name: which machines they hold and what those draw."),
    ] = {}
    acting: Annotated[
        ActingSettings | None,
        Meta(
            description="What the modes canary and active may change: see `[acting]`. Unset: its "
            "defaults."
        ),
    ] = None
    mqtt: Annotated[
        PublishSettings | None,
        Meta(description="Broker to publish to: see `[mqtt]`. Unset: nothing is published."),
    ] = None
    twin: Annotated[
        TwinSettings | None,
        Meta(
            description="How often the shadow twin is asked what the policies would have cost: see "
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
    """The policies with their settings; the default one where none is configured."""
    return config.policies or DEFAULT_POLICIES


def acting_of(config: Config) -> ActingSettings:
    """What may be changed in the modes that act; the defaults where nothing is configured."""
    return config.acting or ActingSettings()


def twin_of(config: Config) -> TwinSettings:
    """How the shadow twin is asked; the defaults where nothing is configured."""
    return config.twin or TwinSettings()


def adapter_of(label: str, settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The plugin name and the settings of an adapter's table."""
    options = dict(settings)
    return str(options.pop("type", label)), options


def listen_address(config: Config) -> tuple[str, int]:
    """Host and port of `listen`. Raises `ConfigurationError`."""
    host, colon, port = config.listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ConfigurationError(
            f'"listen" = {toml_text(config.listen)}: expected an address and port, as in '
            'listen = "127.0.0.1:9690"'
        )
    return host.strip("[]") or "127.0.0.1", int(port)


def socket_path(config: Config) -> Path | None:
    """Return where the Unix socket is, or None: what is configured, else below systemd's own folder."""
    if config.socket is not None:
        return Path(config.socket)
    folder = os.environ.get("RUNTIME_DIRECTORY", "").split(":")[0]
    return Path(folder) / SOCKET_NAME if folder else None
