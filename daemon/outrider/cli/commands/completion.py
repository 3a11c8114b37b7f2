"""``outrider completion``: a completion script for the shell."""

import click

from outrider.cli.printing import echo
from outrider.cli.root import COMPLETION_VARIABLE

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion", short_help="Print a shell completion script.")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a shell completion script.

    With it, the Tab key completes commands, options, files and values: job states, columns of
    lists, tables of a report, names of policies, readers and estimators. Install the script once,
    as in the examples; it works in new shells. For these folders bash needs the package
    bash-completion (without it, source the file in ~/.bashrc), and zsh a folder in its fpath.

    Example:
      outrider completion bash > ~/.local/share/bash-completion/completions/outrider
      outrider completion zsh > ~/.zfunc/_outrider
      outrider completion fish > ~/.config/fish/completions/outrider.fish
      outrider completion bash > /usr/local/share/bash-completion/completions/outrider
      outrider completion zsh > /usr/local/share/zsh/site-functions/_outrider
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    if maker is None:
        raise click.UsageError(f"{shell}: this version of click has no completion for it", ctx)
    made = maker(ctx.find_root().command, {}, "outrider", COMPLETION_VARIABLE)
    echo(made.source_template % made.source_vars())
