"""
Complete a cube of many bands
=============================

A scene of three materials is measured in 20 bands, and 90 % of the cells are missing. A
pixel has about two observed bands. With a few spectra, they determine the others.
"""

import matplotlib.pyplot as plt
import numpy as np

from skmc import NonlocalCompleter, pictures
from skmc.datasets import load_photo
from skmc.metrics import psnr

photo = load_photo("flower")[40:104, 60:124].astype(float)
i, j = np.mgrid[:64, :64] / 64
leaf, disk = i > 0.3 + 0.4 * j**2, (i - 0.4) ** 2 + (j - 0.6) ** 2 < 0.06
shares = np.stack([photo, leaf * (1 - photo), disk.astype(float)], axis=2)
band = np.linspace(0, 1, 20)
peaks = (0.2, 0.15), (0.5, 0.2), (0.8, 0.1)  # centers and widths
spectra = [np.exp(-(((band - center) / width) ** 2)) for center, width in peaks]
cube = shares @ np.stack(spectra)
missing = np.random.RandomState(0).random_sample(cube.shape) < 0.9

# %%
# With spectra, and by similar patches alone
# ------------------------------------------
# ``n_spectra=None`` estimates each band from similar patches, which hold all bands.
answers = {
    "spectra": pictures.complete(cube, missing),
    "patches alone": pictures.complete(
        cube, missing, NonlocalCompleter(n_spectra=None, random_state=0)
    ),
}
for name, answer in answers.items():
    print(f"{name}: PSNR {psnr(answer.reshape(64, -1), cube.reshape(64, -1)):.1f} dB")

shown = {"truth": cube, "observed": np.where(missing, np.nan, cube), **answers}
figure, axes = plt.subplots(2, 4, figsize=(12, 6), layout="constrained")
for row, k in zip(axes, (4, 16), strict=True):
    for ax, (name, picture) in zip(row, shown.items(), strict=True):
        ax.imshow(picture[:, :, k], cmap="gray", vmin=0, vmax=cube[:, :, k].max())
        ax.set_title(f"band {k}: {name}")
        ax.set_axis_off()
plt.show()
