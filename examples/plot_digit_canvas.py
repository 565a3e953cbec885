"""
Find the digit on a canvas
==========================

A handwritten digit stands somewhere on a large noisy image, and the label says which digit it
is, but not where. Each 8×8 patch of an image becomes one row of a sample, the map R of the
paper's Example 2; diagonalized attention finds the patch that matters and reads it.
"""

# %%
# Canvases of varying size. Training and test images share no handwritten digit.

import matplotlib.pyplot as plt

from diagatt import DiagAttClassifier
from diagatt.datasets.canvas import digit_canvas
from diagatt.images import ImageClassifier, draw_attention, draw_coefficients

train, test = digit_canvas(1000, 500, size=((32, 64), (32, 64)), seed=0)
print("sizes of the first images:", [image.shape for image in train.images[:4]])

# %%
# Fit, and look how often the class and the patch are right in new images.

model = ImageClassifier(patch=(8, 8), random_state=0).fit(train.images, train.y)
print(f"accuracy: {model.score(test.images, test.y):.3f}")
print(f"patch found: {test.hit_rate(model.patches_, model.locate(test.images)):.3f}")

# %%
# Where the model looked: the shade is the attention on the pixels, the red box the patch of
# interest, the dashed box (one pixel wider) the truth.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for i, axis in enumerate(axes):
    draw_attention(model, test.images[i], axis, truth=test.boxes[i])
    label = model.predict([test.images[i]])[0]
    axis.set_title(f"predicted {label}, is {test.y[i]}", fontsize=10)

# %%
# The value vector of the head, folded back, is the coefficient matrix V: red ink speaks for the
# larger digit, blue ink for the smaller.

draw_coefficients(model, plt.subplots(figsize=(3.6, 3), layout="constrained")[1])

# %%
# Digits that do not keep to the grid need overlapping patches. A pixel's heat is then the sum of
# the weights of all patches that hold it. A patch counts as found if it holds at least 70 % of
# what the best patch holds: the model is free to look at all digits a little from one side, and
# does so.

train, test = digit_canvas(1000, 500, digits=(0, 1), size=24, on_grid=False, seed=0)
estimator = DiagAttClassifier(solver="likelihood")
model = ImageClassifier(patch=(8, 8), stride=2, estimator=estimator, random_state=0)
model.fit(train.images, train.y)
print(f"accuracy: {model.score(test.images, test.y):.3f}")
print(f"found: {test.hit_rate(model.patches_, model.locate(test.images), share=0.7):.3f}")

figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for i, axis in enumerate(axes):
    draw_attention(model, test.images[i], axis, truth=test.boxes[i])

plt.show()
