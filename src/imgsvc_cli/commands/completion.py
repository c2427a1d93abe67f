"""``imgsvc completion``: the script that a shell needs."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    For bash: imgsvc completion bash > ~/.local/share/bash-completion/completions/imgsvc
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None
    root = click.get_current_context().find_root().command
    click.echo(script(root, {}, "imgsvc", "_IMGSVC_COMPLETE").source())
