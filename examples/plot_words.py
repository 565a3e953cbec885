"""
Which words decide
==================

Comments about furniture begin with a sentence about the weather, which never decides. The model is
given only the sentiment of each comment; it finds the word that decides, also in comments with
words that it has not seen.
"""

# %%
# There are sixty comments to learn from, and new ones with the place of the true keyword.

import matplotlib.pyplot as plt

from diagatt import plots
from diagatt.datasets.keywords import keyword_sentiment
from diagatt.text import TextClassifier

data = keyword_sentiment()
texts, y = data.train.texts[::260], data.train.y[::260]
model = TextClassifier(random_state=0).fit(texts, y)

# %%
# Print the accuracy, and how often the located word is the keyword.

new, truth = data.test.texts[::132], data.test.spans[::132]
found = [words[0].start for words in model.locate(new)] == truth[:, 0]
print(f"accuracy: {model.score(new, data.test.y[::132]):.3f}")
print(f"keyword found: {found.mean():.3f}")

# %%
# Draw four new comments, with each word shaded by its attention.

figure, axes = plt.subplots(4, 1, figsize=(8, 4.4), layout="constrained")
for axis, i in zip(axes, (0, 7, 40, 55), strict=True):
    words = model.attention([new[i]])[0]
    spans = [(word.start, word.stop) for word in words]
    plots.words(new[i], spans, [word.weight for word in words], ax=axis)
    mood = ("negative", "positive")[model.predict([new[i]])[0]]
    axis.set_title(f"predicted {mood}", fontsize=9, loc="left")
