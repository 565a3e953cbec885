"""
Which cells decided?
====================

Single cells of blood, a donor as a sample, and a disease that shows in one natural killer cell
among forty. The model is not told which cell it is: it finds it from the labels of donors alone.

The cells are the 700 that come with scanpy (10x Genomics, 68k PBMC, reduced); donors are drawn
from them, those for training from one half of the cells and new ones from the other half.
"""

import warnings

import anndata
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from diagatt import DiagAttClassifier, PooledClassifier
from diagatt.cells import annotate, read_cells
from diagatt.datasets.packaged import packaged_file

# %%
# Read the cells, and draw donors of forty cells; every other donor is ill.
file = packaged_file("scanpy==1.11.5", "scanpy/datasets/10x_pbmc68k_reduced.h5ad", "this example")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the file is of an older format
    blood = anndata.read_h5ad(file)
SIZE = 40  # cells of a donor
killer = (blood.obs["bulk_labels"] == "CD56+ NK").to_numpy()


def draw_donors(cells, n, prefix, rng):
    """Return an AnnData object of n donors; one killer cell in each that is ill."""
    chosen, donors = [], []
    for i in range(n):
        count = i % 2
        own = [
            rng.choice(cells[killer[cells]], count),
            rng.choice(cells[~killer[cells]], SIZE - count),
        ]
        chosen.append(np.concatenate(own))
        donors.append(f"{prefix}{i:03d}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names repeat until the cells get their own below
        made = blood[np.concatenate(chosen)].copy()
    made.obs["origin"] = made.obs_names.to_numpy()  # a cell may be drawn twice
    made.obs_names = [f"cell {j}" for j in range(made.n_obs)]
    made.obs["donor"] = np.repeat(donors, SIZE)
    made.obs["disease"] = np.repeat(np.where(np.arange(n) % 2, "ill", "well"), SIZE)
    return made


rng = np.random.default_rng(0)
halves = np.array_split(rng.permutation(blood.n_obs), 2)
train, new = draw_donors(halves[0], 100, "t", rng), draw_donors(halves[1], 100, "n", rng)

# %%
# Fit to principal components: ``sample_key`` says which cells belong together. The label must be
# the same for all cells of a donor, which is checked. The baseline sees the mean cell of a donor.
how = {"sample_key": "donor", "obsm": "X_pca"}
model = DiagAttClassifier(random_state=0).fit(train, target="disease", **how)
pooled = PooledClassifier().fit(
    read_cells(train, **how).rows(), read_cells(train, target="disease", **how).y
)
ill = read_cells(new, target="disease", **how).y == "ill"
for name, one in (("mean cell", pooled), ("attention", model)):
    probability = one.predict_proba(read_cells(new, **how).rows())[
        :, list(one.classes_).index("ill")
    ]
    print(f"AUC of new donors, {name}: {roc_auc_score(ill, probability):.3f}")

# %%
# Write attention back to the cells, and colour the map of all cells by it. A cell that was drawn
# several times has the mean of its weights; 1 is what a cell would have if all cells counted alike.
annotate(model, new, **how)
relative = new.obs[new.obs["disease"] == "ill"].groupby("origin")["diagatt_relative"].mean()
place = blood.obs_names.get_indexer(relative.index)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
points = blood.obsm["X_umap"]
left.scatter(*points.T, s=10, c=np.where(killer, "C3", "0.8"))
left.set_title("natural killer cells (not shown to the model)")
right.scatter(*points.T, s=6, c="0.9")
order = np.argsort(relative.to_numpy())
drawn = right.scatter(
    *points[place][order].T, s=14, c=relative.to_numpy()[order], cmap="viridis", vmin=0
)
right.set_title("attention in new donors who are ill")
figure.colorbar(drawn, ax=right, label="attention × number of cells")
for axis in (left, right):
    axis.set(xticks=[], yticks=[], xlabel="UMAP 1")
left.set_ylabel("UMAP 2")
located = new.obs[new.obs["diagatt_located"] & (new.obs["disease"] == "ill")]
share = (located["bulk_labels"] == "CD56+ NK").mean()
print(f"located cells of ill donors that are natural killer cells: {100 * share:.0f} %")
