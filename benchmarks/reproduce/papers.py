"""Figures of papers that several pages compare with."""

# AIR, Table 1: NMAE, and the order of its columns.
AIR_METHODS = ("KNN", "SVD", "DMF", "RDMF", "DMF+DE", "AIR")
AIR_TABLE1 = {
    ("Barbara", "random 30 %"): (0.083, 0.0621, 0.0613, 0.0494, None, 0.0471),
    ("Barbara", "patch"): (0.1563, 0.2324, 0.7664, 0.3025, None, 0.1195),
    ("Barbara", "texture"): (0.0712, 0.1331, 0.3885, 0.1864, None, 0.0692),
    ("Baboon", "random 30 %"): (0.0831, 0.1631, 0.2134, 0.0926, None, 0.0814),
    ("Baboon", "patch"): (0.1195, 0.1571, 0.8133, 0.2111, None, 0.1316),
    ("Baboon", "texture"): (0.1237, 0.1815, 0.5835, 0.2818, None, 0.1208),
    ("Syn-Netflix", "random 70 %"): (0.0032, 0.0376, 0.0003, None, 0.0008, 0.0002),
    ("Syn-Netflix", "random 75 %"): (0.0046, 0.0378, 0.0004, None, 0.0009, 0.0003),
    ("Syn-Netflix", "random 80 %"): (0.0092, 0.0414, 0.0014, None, 0.0012, 0.0007),
    ("IC", "random 20 %"): (0.0169, 0.0547, 0.0773, None, 0.0151, 0.0134),
    ("GPCR", "random 20 %"): (0.0409, 0.0565, 0.1513, None, 0.0245, 0.0271),
}

# AIR, Table 2: (m, L) -> seconds for 10 000 iterations of DMF, RDMF, AIR on a V100.
AIR_TABLE2 = {
    (100, 2): (31.55, 44.24, 59.53),
    (100, 3): (33.93, 46.81, 61.53),
    (100, 4): (36.52, 49.16, 61.59),
    (170, 2): (35.15, 47.67, 65.81),
    (170, 3): (37.97, 51.47, 67.97),
    (170, 4): (41.38, 55.11, 70.86),
    (240, 2): (43.57, 53.36, 82.21),
    (240, 3): (46.5, 59.89, 83.32),
    (240, 4): (52.24, 61.89, 88.34),
}

# Deep image prior (Ulyanov, Vedaldi, Lempitsky, CVPR 2018), Table 1: PSNR with half of
# the pixels missing, of convolutional sparse coding (Papyan et al. 2017) and of theirs.
DIP_TABLE1 = {
    "Barbara": (28.14, 32.22),
    "Boat": (31.44, 33.06),
    "House": (34.58, 39.16),
    "Lena": (35.04, 36.16),
    "Peppers": (31.11, 33.05),
    "C.man": (27.90, 29.80),
}

# DNN-NSR, Table I: percent of the hidden energy that is lost, by percent hidden.
NSR_METHODS = ("IALM", "NCARL", "AEMC", "DLMC", "BiBNN", "DNN-NSR")
NSR_TABLE1 = {
    10: (15.4390, 4.8132, 4.5421, 3.7843, 3.2200, 1.9130),
    30: (18.2639, 6.8739, 6.4113, 4.3082, 3.4340, 2.7940),
    50: (22.7209, 14.3484, 12.2660, 10.0870, 8.3160, 4.1823),
    80: (48.8798, 27.1525, 27.9435, 24.9295, 24.4341, 18.5580),
}

# DNN-NSR, Table IV: NMAE in percent on MovieLens.
NSR_TABLE4 = {
    "100k, 30 %": (19.69, 19.01, 18.87, 18.39, 17.23, 15.54),
    "100k, 50 %": (20.22, 19.61, 19.06, 18.75, 18.12, 17.07),
    "1m, 30 %": (18.51, 18.25, 18.18, 18.03, 17.02, 16.82),
    "1m, 50 %": (18.95, 18.78, 18.36, 18.31, 17.78, 17.16),
}
