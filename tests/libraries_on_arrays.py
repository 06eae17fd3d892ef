"""SciPy and scikit-learn on the arrays of ``defn.array_api``, next to NumPy's; run by
``test_array_api_libraries.py`` in a process of its own: SciPy reads ``SCIPY_ARRAY_API`` once.

It prints a line for each function, and ends with status 1 if one differs.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from scipy import cluster, fft, integrate, ndimage, optimize, signal, spatial, special, stats
from sklearn import (
    config_context,
    decomposition,
    discriminant_analysis,
    linear_model,
    metrics,
    model_selection,
    naive_bayes,
    preprocessing,
)

import defn.array_api as xp

warnings.simplefilter("ignore")
RNG = np.random.default_rng(11)
X = RNG.normal(size=(40, 3))
Y = RNG.normal(size=40)

SCIPY: dict[str, Any] = {
    "special.logsumexp": lambda n, x, y: special.logsumexp(x, axis=0),
    "special.softmax": lambda n, x, y: special.softmax(x, axis=1),
    "special.log_softmax": lambda n, x, y: special.log_softmax(x, axis=0),
    "special.entr": lambda n, x, y: special.entr(n.abs(x)),
    "special.gammaln": lambda n, x, y: special.gammaln(n.abs(x)),
    "special.expit": lambda n, x, y: special.expit(x),
    "special.xlogy": lambda n, x, y: special.xlogy(n.abs(x), n.abs(x)),
    "stats.zscore": lambda n, x, y: stats.zscore(x),
    "stats.skew": lambda n, x, y: stats.skew(x),
    "stats.kurtosis": lambda n, x, y: stats.kurtosis(x, axis=1),
    "stats.moment": lambda n, x, y: stats.moment(x, order=3),
    "stats.gmean": lambda n, x, y: stats.gmean(n.abs(x)),
    "stats.ttest_1samp": lambda n, x, y: stats.ttest_1samp(x, 0.0).pvalue,
    "stats.pearsonr": lambda n, x, y: stats.pearsonr(x[:, 0], y).pvalue,
    "stats.variation": lambda n, x, y: stats.variation(x),
    "stats.normaltest": lambda n, x, y: stats.normaltest(x).statistic,
    "fft.fft": lambda n, x, y: fft.fft(x, axis=0),
    "fft.irfft": lambda n, x, y: fft.irfft(fft.rfft(y)),
    "fft.fftn": lambda n, x, y: fft.fftn(x),
    "fft.dct": lambda n, x, y: fft.dct(x),
    "cluster.vq.whiten": lambda n, x, y: cluster.vq.whiten(x),
    "cluster.vq.vq": lambda n, x, y: cluster.vq.vq(x, x[:4, :])[1],
    "cluster.hierarchy.linkage": lambda n, x, y: cluster.hierarchy.linkage(x),
    "signal.detrend": lambda n, x, y: signal.detrend(x, axis=0),
    "signal.fftconvolve": lambda n, x, y: signal.fftconvolve(y, x[:5, 0]),
    "signal.lfilter": lambda n, x, y: signal.lfilter(x[:3, 0], x[:3, 1], y),
    "ndimage.gaussian_filter": lambda n, x, y: ndimage.gaussian_filter(x, 1.0),
    "integrate.trapezoid": lambda n, x, y: integrate.trapezoid(x, axis=0),
    "integrate.cumulative_simpson": lambda n, x, y: integrate.cumulative_simpson(y, dx=0.1),
    "integrate.cubature": lambda n, x, y: (
        integrate.cubature(
            lambda v: n.sum(v * v, axis=-1), n.asarray([0.0, 0.0]), n.asarray([1.0, 2.0])
        ).estimate
    ),
    "optimize.rosen": lambda n, x, y: optimize.rosen(y),
    "spatial.Rotation": lambda n, x, y: spatial.transform.Rotation.from_rotvec(x[0, :]).as_matrix(),
}

# Estimators and measures of two classes, and of a target.
LEARN: dict[str, Any] = {
    "PCA": lambda n, x, y: decomposition.PCA(2, svd_solver="full").fit(x).explained_variance_,
    "PCA by eigh": lambda n, x, y: (
        decomposition.PCA(2, svd_solver="covariance_eigh").fit(x).singular_values_
    ),
    "Ridge": lambda n, x, y: linear_model.Ridge(solver="svd").fit(x, y).coef_,
    "RidgeClassifier": lambda n, x, y: (
        linear_model.RidgeClassifier(solver="svd").fit(x, classes(n, y)).predict(x)
    ),
    "LinearDiscriminantAnalysis": lambda n, x, y: (
        discriminant_analysis.LinearDiscriminantAnalysis().fit(x, classes(n, y)).coef_
    ),
    "GaussianNB": lambda n, x, y: naive_bayes.GaussianNB().fit(x, classes(n, y)).predict_proba(x),
    "StandardScaler": lambda n, x, y: preprocessing.StandardScaler().fit_transform(x),
    "MinMaxScaler": lambda n, x, y: preprocessing.MinMaxScaler().fit_transform(x),
    "MaxAbsScaler": lambda n, x, y: preprocessing.MaxAbsScaler().fit_transform(x),
    "Normalizer": lambda n, x, y: preprocessing.Normalizer().fit_transform(x),
    "PolynomialFeatures": lambda n, x, y: preprocessing.PolynomialFeatures(2).fit_transform(x),
    "KernelCenterer": lambda n, x, y: preprocessing.KernelCenterer().fit_transform(x @ x.T),
    "LabelEncoder": lambda n, x, y: preprocessing.LabelEncoder().fit_transform(classes(n, y)),
    "cosine_similarity": lambda n, x, y: metrics.pairwise.cosine_similarity(x),
    "euclidean_distances": lambda n, x, y: metrics.pairwise.euclidean_distances(x),
    "rbf_kernel": lambda n, x, y: metrics.pairwise.rbf_kernel(x),
    "train_test_split": lambda n, x, y: model_selection.train_test_split(x, random_state=0)[0],
    "r2_score": lambda n, x, y: n.asarray(metrics.r2_score(y, 0.9 * y)),
    "mean_squared_error": lambda n, x, y: n.asarray(metrics.mean_squared_error(y, 0.9 * y)),
    "accuracy_score": lambda n, x, y: n.asarray(
        metrics.accuracy_score(classes(n, y), classes(n, y + 0.5))
    ),
    "f1_score": lambda n, x, y: n.asarray(metrics.f1_score(classes(n, y), classes(n, y + 0.5))),
}


def classes(n: Any, y: Any) -> Any:
    return n.astype(y > 0, n.int64)


def main() -> int:
    wrong = 0
    for name, call in {**SCIPY, **LEARN}.items():
        want = call(np, X, Y)
        try:
            with config_context(array_api_dispatch=True):
                got = call(xp, xp.asarray(X), xp.asarray(Y))
            assert isinstance(got, xp.Array), type(got)
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-8, atol=1e-10)
        except Exception as error:  # Every function is reported.
            wrong += 1
            print(f"{name}: {type(error).__name__}: {error}")
        else:
            print(f"{name}: as NumPy's")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
