"""``outrider token``: creates the token that admits clients or shows users' names."""

from pathlib import Path

import click

from outrider.cli.options import config_option, file_path
from outrider.cli.printing import echo


@click.command("token", short_help="Create the token that admits clients or shows users' names.")
@config_option
@click.option(
    "--file", "file", type=file_path(dir_okay=False), metavar="FILE",
    help="File of the token. [default: token_file of --config, else `token` next to the journal]",
)  # fmt: skip
@click.option("--new", is_flag=True, help="Replace an existing token.")
def command(config: Path | None, file: Path | None, new: bool) -> None:
    """Create the token that admits clients or shows users' names.

    Use it if the page is opened over TCP. On loopback any local user can open the page and sees
    pseudonyms for users; clients that send the token see names. If the configuration sets
    token_file, the page needs the token. The daemon's Unix socket never needs one.

    It writes a random token into a file that only its owner can read (mode 0600) and never prints
    the token. An existing token is kept unless --new is given. The daemon reads the file when it
    starts and when it reloads its configuration (SIGHUP).

    Example:
      outrider token --config /etc/outrider/outrider.toml

    If root creates the file in a state directory, the owner of that directory gets it.
    """
    from outrider.cli.configuration import journal_path, read
    from outrider.cli.doctor.secret_files import make_token
    from outrider.model.credentials import is_credential
    from outrider.model.errors import ConfigurationError
    from outrider.service.config.reading import TOKEN_NAME

    own = read(config)
    default = journal_path(own).with_name(TOKEN_NAME)
    lets_in = False
    if file is None and own is not None and own.config.token_file is not None:
        if is_credential(own.config.token_file):
            raise ConfigurationError(
                f'{own.source}: "token_file" = "{own.config.token_file}" is a credential of '
                "systemd; use --file with the file that LoadCredential= reads"
            )
        file, lets_in = Path(own.config.token_file), True
    path = default if file is None else file
    echo(make_token(path, replace=new))
    if lets_in:
        echo("The page and the API need this token (token_file).")
    elif path == default:
        echo("Clients that send it see users' names; others see pseudonyms.")
    echo(
        "The daemon reads it when it starts or reloads (systemctl reload outrider, or SIGHUP).\n"
        "In a browser, sign in at /sign-in with any user name and the token as password. For a "
        f"command use --token-file {path}"
    )
