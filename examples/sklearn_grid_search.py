"""`ECGClassifier` in a grid search: nodes are split, the graph stays whole."""

import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split

from ecg_gnn import ECGClassifier, load_dataset

dataset = load_dataset("csbm:nodes=400,classes=3,homophily=0.1,signal=1.5")
nodes, classes = np.arange(dataset.num_nodes), dataset.y.numpy()
train, test = train_test_split(nodes, stratify=classes, random_state=0)

search = GridSearchCV(
    ECGClassifier(graph=dataset.data(), steps=40, lr=1e-2, hidden=32, layers=1),
    # "none" is the plain GNN: the search itself says whether the evolved graph helps.
    {"embedding": ["none", "mlp"], "model": ["gcn", "sage"]},
    cv=3,
).fit(train, classes[train])

for setting, score in zip(
    search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
):
    print(f"{setting['model']:>4} + {setting['embedding']:<4}  {score:.3f}")
print(f"best: {search.best_params_}")
print(f"test accuracy: {search.score(test, classes[test]):.3f}")
