"""``outrider completion``: a script for the shell."""

import click

from outrider.cli.printing import echo
from outrider.cli.root import COMPLETION_VARIABLE

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion", short_help="Print a script that lets a shell complete Outrider's words."
)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a script that lets a shell complete Outrider's words.

    Then the Tab key completes commands, options, files, and values: job states, columns of lists,
    tables of a report, names of policies, readers and estimators. Write the script where your shell
    looks for such scripts, once; a new shell has it. bash needs the package bash-completion for
    these folders (without it: source the file in ~/.bashrc), zsh a folder of its fpath.

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
