"""TeX to MathML, which browsers show by themselves. A formula that cannot be read is a warning, so an error of the build."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

_log = logging.getLogger(__name__)


def _write(translator, node, display: str) -> None:
    try:
        text = convert(node.astext(), display=display)
        if "\\" in text:  # a command that the converter does not know stays as it is
            raise ValueError(f"unknown command in {text[text.index(chr(92)) :][:40]}")
        translator.body.append(text)
    except Exception as error:
        _log.warning(
            "formula `%s` cannot be converted: %s: %s", node.astext(), type(error).__name__, error, location=node
        )
    raise nodes.SkipNode


def _inline(translator, node) -> None:
    _write(translator, node, "inline")


def _block(translator, node) -> None:
    _write(translator, node, "block")


def setup(app) -> dict:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
