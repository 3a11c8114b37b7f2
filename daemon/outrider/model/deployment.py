"""Deployment of the service: where its MQTT broker is, and what its sandbox must allow."""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

# -- service needs ---------------------------------------------------------------------------------
# What a service has to be allowed so that an adapter works in it.


class HelperUnit(Struct, frozen=True, kw_only=True):
    """A service of another user's that works for the daemon, begun by its socket.

    Both units, ``NAME.socket`` and ``NAME.service``, came with this Outrider.

    Attributes:
        name: of both units.
        words: what Python runs after ``-m``: a module's name, and what it is told.
        user: whom it runs as.
        socket: path of the socket.
    """

    name: str
    words: tuple[str, ...]
    user: str
    socket: str


TOKENS_PREFIX: Final = "tokens-"
"""Beginning of the names of the credentials that are the files of a token folder."""


class ServiceNeeds(Struct, frozen=True, kw_only=True):
    """Needs of a plugin that ``outrider install-service`` and ``doctor`` open in the unit.

    Attributes:
        hosts: whom it connects to, names or addresses, and what each is: "collector".
        files: files, folders or patterns of files that it reads.
        secrets: files that nobody but the service should be able to read.
        token_folders: the same for folders, whose place an environment variable names: the folder,
            and the variable.
        environment: variables that it needs, as they are here.
        helpers: units that have to be there beside the daemon's.
        shared_tmp: why it needs this host's ``/tmp``, where a service has one of its own; empty: it
            does not.
        capabilities: Linux capabilities that its programs need, and why each.
        unknown_hosts: why not all of its hosts are known, so that none may be denied; empty: they
            are known.
        changes_last: whether a lever changes what does not lapse by itself (`Lever.lasts`).
        notes: what could not be found out, a sentence each.
    """

    hosts: Mapping[str, str] = {}
    files: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    token_folders: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    helpers: tuple[HelperUnit, ...] = ()
    shared_tmp: str = ""
    capabilities: Mapping[str, str] = {}
    unknown_hosts: str = ""
    changes_last: bool = False
    notes: tuple[str, ...] = ()


# -- broker settings -------------------------------------------------------------------------------
# Where an MQTT broker is, as adapters and outputs are told it.

PLAIN_PORT: Final = 1883
TLS_PORT: Final = 8883


class BrokerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Address and credentials of an MQTT broker."""

    host: Annotated[str, Meta(min_length=1, description="Name or address of the MQTT broker.")] = (
        "localhost"
    )
    port: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=65535,
                description="Its port. Unset: 1883, or 8883 with tls.",
                examples=[PLAIN_PORT],
            ),
        ]
        | None
    ) = None
    username: (
        Annotated[
            str,
            Meta(
                min_length=1,
                description="The user to log in as. Unset: anonymous.",
                examples=["outrider"],
            ),
        ]
        | None
    ) = None
    password_file: (
        Annotated[
            str,
            Meta(
                min_length=1,
                description="File whose first line is the user's password; readable by Outrider "
                "alone (chmod 600). Read at each connection, so it may change at any time. "
                "$CREDENTIALS_DIRECTORY/NAME is what systemd hands over (LoadCredential=NAME).",
                examples=["/etc/outrider/mqtt-password"],
            ),
        ]
        | None
    ) = None
    tls: Annotated[
        bool,
        Meta(
            description="Encrypt, and check that the broker's certificate is valid for host. Turn "
            "it on if the connection leaves this machine: the password travels with it."
        ),
    ] = False
    ca_file: (
        Annotated[
            str,
            Meta(
                min_length=1,
                description="PEM file of the authority that signed the broker's certificate. "
                "Unset: those the system trusts.",
                examples=["/etc/outrider/broker-ca.pem"],
            ),
        ]
        | None
    ) = None
    cert_file: (
        Annotated[
            str,
            Meta(
                min_length=1,
                description="PEM file of our own certificate, where the broker asks for one.",
                examples=["/etc/outrider/mqtt-cert.pem"],
            ),
        ]
        | None
    ) = None
    key_file: (
        Annotated[
            str,
            Meta(
                min_length=1,
                description="PEM file of its key. Unset: it is in cert_file.",
                examples=["/etc/outrider/mqtt-key.pem"],
            ),
        ]
        | None
    ) = None
    client_id: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            description="The first part of our client identifiers. A broker closes the older of "
            "two connections with one identifier, so two Outriders on one broker need two.",
        ),
    ] = "outrider"
    keepalive_s: Annotated[
        int,
        Meta(
            ge=5,
            le=3600,
            description="Seconds of silence after which either side asks whether the other is "
            "there. A broker that vanishes without a word is noticed after at most twice as long.",
        ),
    ] = 30

    def __post_init__(self) -> None:
        if self.password_file and not self.username:
            raise ValueError(
                "password_file is set, but username is not; expected the user whose password "
                'it is, as in username = "outrider"'
            )
        if self.key_file and not self.cert_file:
            raise ValueError(
                "key_file is set, but cert_file is not; expected the certificate of that "
                'key, as in cert_file = "/etc/outrider/mqtt-cert.pem"'
            )
        if not self.tls and (self.ca_file or self.cert_file):
            raise ValueError(
                "ca_file and cert_file are for an encrypted connection; expected tls = true"
            )

    @property
    def address(self) -> str:
        """Host and port, as errors name them."""
        return f"{self.host}:{self.port or (TLS_PORT if self.tls else PLAIN_PORT)}"

    @property
    def needs(self) -> ServiceNeeds:
        """Return what a service that connects to it must be allowed."""
        secrets = (self.password_file, self.key_file or self.cert_file)
        return ServiceNeeds(
            hosts={self.host: "MQTT broker"},
            files=tuple(filter(None, (self.ca_file, self.cert_file if self.key_file else None))),
            secrets=tuple(filter(None, secrets)),
        )
