"""Small pictures of the last full build stand for examples that are not run.

With ``-t quick``, each example of the gallery shows ``docs/images/gallery/NAME.jpg``.
After a full build, ``-t store`` writes these files again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

WIDTH = 480


def folders(app) -> tuple[Path, Path]:
    source = Path(app.srcdir)
    return source / "images" / "gallery", source / "gallery" / "images"


def bring(app) -> None:
    """Put the stored pictures where the gallery looks for those of a run."""
    if not app.tags.has("quick"):
        return
    stored, gallery = folders(app)
    gallery.mkdir(parents=True, exist_ok=True)
    for path in stored.glob("*.jpg"):
        if not list(gallery.glob(f"sphx_glr_{path.stem}_001.*")):
            shutil.copy(path, gallery / f"sphx_glr_{path.stem}_001.jpg")


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

    stored, gallery = folders(app)
    stored.mkdir(exist_ok=True)
    for path in gallery.glob("sphx_glr_plot_*_001.png"):
        picture = Image.open(path).convert("RGB")
        height = round(picture.height * WIDTH / picture.width)
        name = path.stem.removeprefix("sphx_glr_").removesuffix("_001")
        picture.resize((WIDTH, height)).save(stored / f"{name}.jpg", quality=75)


def setup(app):
    app.connect("builder-inited", bring, priority=400)  # before the gallery
    app.connect("source-read", show)
    app.connect("build-finished", store)
    return {"parallel_read_safe": True}
