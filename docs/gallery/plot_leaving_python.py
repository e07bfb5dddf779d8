"""
A model that leaves the package
===============================

What has been learned can be used elsewhere: `to_sklearn` gives an estimator of
scikit-learn alone, `to_onnx` a graph that needs no Python. Both predict the same numbers.
"""

import pickle
import pickletools

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from onlinebregman import ForwardClassifier, LogDetMetricLearner, MetricKNeighborsClassifier

X, y = load_breast_cancer(return_X_y=True)
train, test = slice(0, 400), slice(400, None)

# %%
# A model of random features on standardised columns becomes a pipeline of scikit-learn's
# steps, whose pickle does not name this package.

model = ForwardClassifier(standardize=True, random_features=128, random_state=0)
model.partial_fit(X[train], y[train], classes=[0, 1])
converted = model.to_sklearn()
print([type(step).__name__ for _, step in converted.steps])
saved = pickle.dumps(converted)
names = {str(value) for _, value, _ in pickletools.genops(saved) if value is not None}
print("names this package:", any("onlinebregman" in name for name in names))

# %%
# So do metrics, and nearest neighbours in them.

metric = LogDetMetricLearner(random_state=0).fit(X[train] / X[train].std(axis=0), y[train])
neighbors = MetricKNeighborsClassifier(random_state=0).fit(X[train], y[train])
for each in (metric, neighbors):
    print(f"{type(each).__name__} becomes {type(each.to_sklearn()).__name__}")

# %%
# ONNX, with the extra `onnx`; onnxruntime, or any other runtime, predicts with the graph.

probabilities = {"scikit-learn": pickle.loads(saved).predict_proba(X[test])[:, 1]}
try:
    import onnxruntime

    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    probabilities["onnxruntime"] = session.run(["probabilities"], {"X": X[test]})[0][:, 1]
except ImportError:
    print("needs onnx and onnxruntime")

here = model.predict_proba(X[test])[:, 1]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for number, (name, there) in enumerate(probabilities.items()):
    left.plot(here, there, "ox"[number], ms=8 - 3 * number, mfc="none", label=name)
    right.semilogy(np.sort(np.abs(there - here)) + 1e-18, label=name)
left.set(xlabel="probability here", ylabel="probability there")
left.legend()
right.set(xlabel="rows, sorted", ylabel="difference", title="rounding")
right.legend()
plt.show()
