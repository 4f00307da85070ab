"""Single backticks: a link where a name is meant, a literal where a formula is."""

from __future__ import annotations

import re

from docutils import nodes


def name_role(role, rawtext, text, lineno, inliner, options=None, content=()):
    if re.fullmatch(r"[A-Za-z_][\w.]*", text):
        env = inliner.document.settings.env
        link = env.get_domain("py").role("obj")
        # A leading dot finds `nmae` in skmc.metrics, too.
        return link("py:obj", rawtext, f"~.{text}", lineno, inliner)
    return [nodes.literal(rawtext, text)], []


def setup(app):
    app.add_role("name", name_role)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
