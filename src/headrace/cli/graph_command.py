"""`headrace graph`: steps, tables and sources, as text or as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli import shared_options


@click.command
@click.argument("pipeline", required=False)
@click.option("--format", "form", type=click.Choice(["text", "mermaid", "svg"]), default="text", show_default=True)
@click.option("--output", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@shared_options.environment()
@shared_options.root
@shared_options.facts
def graph(pipeline: str | None, form: str, file: Path | None, environment: str, start: Path, as_json: bool) -> None:
    """Show how a pipeline's steps hang together."""
    from headrace.config.load import find_root, load_bundle
    from headrace.observe import graph_rendering

    # The shape is the same whatever the values are.
    bundle = load_bundle(find_root(start), environment, lenient=True)
    drawn = graph_rendering.build_graph(bundle, *([pipeline] if pipeline else bundle.pipelines))
    forms = {"text": graph_rendering.as_text, "mermaid": graph_rendering.as_mermaid, "svg": graph_rendering.as_svg}
    text = graph_rendering.as_json(drawn) if as_json else forms[form](drawn)
    if file is None:
        click.echo(text)
        return
    try:
        file.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be written: {error.strerror}", param_hint="--output") from error
