"""The `tessiq` command: its subcommands and their options. What a subcommand does is imported when it runs, so that
`tessiq plugins` and `tessiq opt` start in a fraction of a second and import no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="tessiq",
    help="Show what tessiq does and why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"tessiq {version('tessiq-core')}")
        raise typer.Exit


@app.callback()
def tessiq(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version of tessiq-core.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Show what tessiq does and why."""


@app.command()
def plugins(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="List everything each plugin offers, too.")] = False,
) -> None:
    """Show every plugin: what loaded, what did not and why, and who lost to whom."""
    from tessiq_cli.errors import reported
    from tessiq_cli.plugins import show_plugins

    with reported():
        show_plugins(as_json=as_json, everything=everything)


@app.command()
def opt(
    file: Annotated[
        str, typer.Argument(help="A graph, or a golden file (its input is taken); - reads standard input.")
    ] = "-",
    passes: Annotated[
        str | None, typer.Option("--passes", "-p", help="Passes to run, separated by commas; default: the RUN line.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Check the graph before and after each pass.")] = False,
    list_passes: Annotated[bool, typer.Option("--list", help="List the passes instead.")] = False,
) -> None:
    """Run passes on a graph in its text form and print the result."""
    from tessiq_cli.errors import reported
    from tessiq_cli.opt import run_opt, show_passes

    with reported():
        if list_passes:
            show_passes()
        else:
            run_opt(file, passes, verify=verify)


@app.command()
def explain(
    file: Annotated[Path, typer.Argument(help="A Python file with functions model() and inputs().")],
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="An option of the backend, such as verify=true.")
    ] = None,
) -> None:
    """Compile a model and show what runs where, and why the rest was left to PyTorch."""
    from tessiq_cli.errors import reported
    from tessiq_cli.explain import run_explain

    with reported():
        run_explain(file, option or [])


if __name__ == "__main__":
    app()
