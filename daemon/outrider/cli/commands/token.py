"""``outrider token``: the token that lets clients in, or shows them users' names."""

from pathlib import Path

import click

from outrider.cli.options import config_option, file_path
from outrider.cli.printing import echo


@click.command("token", short_help="Make the token that shows users' names, or lets clients in.")
@config_option
@click.option(
    "--file", "file", type=file_path(dir_okay=False), metavar="FILE",
    help="Where to keep it. [default: token_file of --config, else `token` beside the journal]",
)  # fmt: skip
@click.option("--new", is_flag=True, help="Replace the token that is there.")
def command(config: Path | None, file: Path | None, new: bool) -> None:
    """Make the token that shows users' names, or lets clients in.

    Use it where the page is looked at over TCP: on loopback everybody on this host may look, and
    users have pseudonyms. Who sends the token sees their names. Where the configuration has a
    token_file, nobody may look without the token. Over the daemon's Unix socket none is needed.

    It writes a random token into a file that its owner alone can read (mode 0600) and says what it
    did; it never prints the token. One that is there stays, unless --new is given. The daemon
    reads it when it starts and when it is told to read its configuration again (SIGHUP).

    Example:
      outrider token --config /etc/outrider/outrider.toml

    Made by root in a state directory, the file is given to the owner of that directory.
    """
    from outrider.cli.configuration import journal_path, read
    from outrider.cli.doctor.secret_files import make_token
    from outrider.model.credentials import is_credential
    from outrider.model.errors import ConfigurationError
    from outrider.service.config.reading import TOKEN_NAME

    own = read(config)
    beside = journal_path(own).with_name(TOKEN_NAME)
    lets_in = False
    if file is None and own is not None and own.config.token_file is not None:
        if is_credential(own.config.token_file):
            raise ConfigurationError(
                f'{own.source}: "token_file" = "{own.config.token_file}" is what systemd '
                "hands over; --file names the file that LoadCredential= reads"
            )
        file, lets_in = Path(own.config.token_file), True
    path = beside if file is None else file
    echo(make_token(path, replace=new))
    if lets_in:
        echo("Nobody may look without it (token_file).")
    elif path == beside:
        echo("Who sends it is shown users' names; others are shown pseudonyms.")
    echo(
        "The daemon reads it when it starts or reloads (systemctl reload outrider, or SIGHUP).\n"
        "A browser asks for it at /sign-in: any user name, the token as password. A command takes "
        f"--token-file {path}"
    )
