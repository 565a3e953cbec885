"""
Find the digit on a canvas
==========================

A handwritten digit is somewhere on a large noisy image; the label says which digit it is, but not
where. Each 8×8 patch of an image becomes one row of a sample (the map R of the paper's Example 2).
Diagonalized attention finds the patch that matters and reads it.
"""

# %%
# The canvases have different sizes. Training and test images share no handwritten digit.

import matplotlib.pyplot as plt

from diagatt import DiagAttClassifier
from diagatt.datasets.canvas import digit_canvas
from diagatt.images import ImageClassifier, draw_attention, draw_coefficients

train, test = digit_canvas(1000, 500, size=((32, 64), (32, 64)), seed=0)
print("sizes of the first images:", [image.shape for image in train.images[:4]])

# %%
# Fit the model, and see how often it gets the class and the patch of new images right.

model = ImageClassifier(patch=(8, 8), random_state=0).fit(train.images, train.y)
print(f"accuracy: {model.score(test.images, test.y):.3f}")
print(f"patch found: {test.hit_rate(model.patches_, model.locate(test.images)):.3f}")

# %%
# This is where the model looked: the shade is the attention on the pixels, the red box is the patch
# of interest, and the dashed box (one pixel wider) is the truth.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for i, axis in enumerate(axes):
    draw_attention(model, test.images[i], axis, truth=test.boxes[i])
    label = model.predict([test.images[i]])[0]
    axis.set_title(f"predicted {label}, is {test.y[i]}", fontsize=10)

# %%
# The value vector of the head, reshaped to a patch, is the coefficient matrix V: ink on red pixels
# is evidence for the larger digit, ink on blue pixels for the smaller one.

draw_coefficients(model, plt.subplots(figsize=(3.6, 3), layout="constrained")[1])

# %%
# Digits that are not on the grid need overlapping patches. A pixel's heat is then the sum of the
# weights of all patches that contain it. A patch counts as found if it contains at least 70 % of
# what the best patch contains: the model is free to look slightly to one side of all digits, and
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
