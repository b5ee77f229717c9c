"""`headrace graph`: show steps, tables and sources as text, as a picture or as JSON."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli import shared_options
from headrace.cli.help_examples import examples


@click.command(epilog=examples("headrace graph orders", "headrace graph --format svg --output pipelines.svg"))
@click.argument("pipeline", required=False)
@click.option(
    "--format",
    "graph_format",
    type=click.Choice(["text", "mermaid", "svg"]),
    default="text",
    show_default=True,
    help="The format of the graph. With -o json, this option has no effect.",
)
@click.option(
    "--output",
    "output_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the graph to this file instead of stdout.",
)
@shared_options.environment()
@shared_options.bundle_dir
@shared_options.output_format
def graph(
    pipeline: str | None,
    graph_format: str,
    output_file: Path | None,
    environment: str,
    bundle_dir: Path,
    as_json: bool,
) -> None:
    """Show how the steps of a pipeline are connected.

    Without PIPELINE, shows all pipelines of the bundle.
    """
    from headrace.config.load import find_root, load_bundle
    from headrace.observe import graph_rendering

    # The graph does not depend on --value, so required values may be missing.
    bundle = load_bundle(find_root(bundle_dir), environment, lenient=True)
    pipelines = [pipeline] if pipeline else list(bundle.pipelines)
    pipeline_graph = graph_rendering.build_graph(bundle, *pipelines)
    renderers = {"text": graph_rendering.as_text, "mermaid": graph_rendering.as_mermaid, "svg": graph_rendering.as_svg}
    render = graph_rendering.as_json if as_json else renderers[graph_format]
    text = render(pipeline_graph)
    if output_file is None:
        click.echo(text)
        return
    try:
        output_file.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise click.BadParameter(f"cannot write {output_file}: {error.strerror}", param_hint="--output") from error
