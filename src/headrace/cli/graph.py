"""`headrace graph`: steps, tables and sources, as text or as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli import options


@click.command
@click.argument("pipeline", required=False)
@click.option("--format", "form", type=click.Choice(["text", "mermaid", "svg"]), default="text", show_default=True)
@click.option("--output", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@options.environment()
@options.root
@options.facts
def graph(pipeline: str | None, form: str, file: Path | None, environment: str, start: Path, as_json: bool) -> None:
    """Show how a pipeline's steps hang together."""
    from headrace import drawing
    from headrace.config.load import find_root, load_bundle

    # The shape is the same whatever the values are.
    bundle = load_bundle(find_root(start), environment, lenient=True)
    drawn = drawing.draw(bundle, *([pipeline] if pipeline else bundle.pipelines))
    forms = {"text": drawing.as_text, "mermaid": drawing.as_mermaid, "svg": drawing.as_svg}
    text = drawing.as_json(drawn) if as_json else forms[form](drawn)
    if file is None:
        click.echo(text)
        return
    try:
        file.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be written: {error.strerror}", param_hint="--output") from error
