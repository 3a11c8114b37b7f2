"""``outrider completion``: a script for the shell."""

import click

from outrider.cli.root import COMPLETION_VARIABLE

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion", short_help="Print a script that lets a shell complete Outrider's words."
)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a script that lets a shell complete Outrider's words.

    Use it once, in the start-up file of your shell; then the Tab key completes commands, options
    and names of policies.

    Example:
      outrider completion bash > ~/.local/share/bash-completion/completions/outrider
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    if maker is None:
        raise click.UsageError(f"{shell}: this version of click has no completion for it", ctx)
    made = maker(ctx.find_root().command, {}, "outrider", COMPLETION_VARIABLE)
    click.echo(made.source_template % made.source_vars())
