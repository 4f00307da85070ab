"""Small pictures of the last full build stand for examples that are not run.

With ``-t quick``, each example of the gallery shows ``docs/images/gallery/NAME.jpg``.
After a full build, ``-t store`` writes these files again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

WIDTH = 480


def folders(app) -> tuple[Path, list[Path]]:
    """The folder of the stored pictures, and those of the sections of the gallery."""
    source = Path(app.srcdir)
    sections = sorted((source.parent / "examples").glob("*/GALLERY_HEADER.rst"))
    names = [path.parent.name for path in sections]
    return source / "images/gallery", [source / "gallery" / n / "images" for n in names]


def bring(app) -> None:
    """Put the stored pictures where the gallery looks for those of a run."""
    if not app.tags.has("quick"):
        return
    stored, sections = folders(app)
    for images in sections:
        images.mkdir(parents=True, exist_ok=True)
        examples = app.srcdir.parent / "examples" / images.parent.name
        for path in stored.glob("*.jpg"):
            found = list(images.glob(f"sphx_glr_{path.stem}_001.*"))
            if (examples / f"{path.stem}.py").exists() and not found:
                shutil.copy(path, images / f"sphx_glr_{path.stem}_001.jpg")


def show(app, docname, content) -> None:
    """Show the picture at the end of the page of an example that was not run."""
    stored, _ = folders(app)
    name = docname.rpartition("/")[2]
    if app.tags.has("quick") and (stored / f"{name}.jpg").exists():
        content[0] += f"\n.. image:: /images/gallery/{name}.jpg\n   :alt: {name}\n"


def store(app, exception) -> None:
    if exception is not None or not app.tags.has("store"):
        return
    from PIL import Image

    stored, sections = folders(app)
    stored.mkdir(exist_ok=True)
    paths = [p for images in sections for p in images.glob("sphx_glr_plot_*_001.png")]
    for path in paths:
        picture = Image.open(path).convert("RGB")
        height = round(picture.height * WIDTH / picture.width)
        name = path.stem.removeprefix("sphx_glr_").removesuffix("_001")
        picture.resize((WIDTH, height)).save(stored / f"{name}.jpg", quality=75)


def setup(app):
    app.connect("builder-inited", bring, priority=400)  # before the gallery
    app.connect("source-read", show)
    app.connect("build-finished", store)
    return {"parallel_read_safe": True}
