"""SciPy and scikit-learn on the arrays of ``defn.array_api``, next to NumPy's; run by
``test_array_api_libraries.py`` in a process of its own: SciPy reads ``SCIPY_ARRAY_API`` once.

It prints a line for each function, and ends with status 1 if one differs.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from scipy import (
    cluster,
    differentiate,
    fft,
    integrate,
    interpolate,
    linalg,
    ndimage,
    optimize,
    signal,
    spatial,
    special,
    stats,
)
from scipy.optimize import elementwise
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
# Low-pass filters: numerator and denominator, and sections of second order.
LOW = signal.butter(2, 0.3)
SECTIONS = signal.butter(4, 0.3, output="sos")

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
    "fft.ifft": lambda n, x, y: fft.ifft(y),
    "fft.hfft": lambda n, x, y: fft.hfft(fft.rfft(y)),
    "fft.rfft2": lambda n, x, y: fft.rfft2(x),
    "fft.irfftn": lambda n, x, y: fft.irfftn(fft.rfftn(x), s=x.shape),
    "fft.fftshift": lambda n, x, y: fft.fftshift(x),
    "fft.dctn": lambda n, x, y: fft.dctn(x),
    "fft.idct": lambda n, x, y: fft.idct(y),
    "fft.dst": lambda n, x, y: fft.dst(x, type=3, axis=0),
    "fft.fht": lambda n, x, y: fft.fht(n.abs(y), 0.1, 1.0),
    "cluster.vq.kmeans2": lambda n, x, y: cluster.vq.kmeans2(x, x[:3, :], minit="matrix")[0],
    "cluster.hierarchy.cophenet": lambda n, x, y: cluster.hierarchy.cophenet(
        cluster.hierarchy.linkage(x, "average")
    ),
    "cluster.hierarchy.fcluster": lambda n, x, y: cluster.hierarchy.fcluster(
        cluster.hierarchy.linkage(x, "ward"), 3, "maxclust"
    ),
    "cluster.hierarchy.inconsistent": lambda n, x, y: cluster.hierarchy.inconsistent(
        cluster.hierarchy.linkage(x)
    ),
    "signal.convolve": lambda n, x, y: signal.convolve(y, x[:5, 0], mode="same"),
    "signal.correlate": lambda n, x, y: signal.correlate(y, x[:, 0]),
    "signal.filtfilt": lambda n, x, y: signal.filtfilt(*tuple(n.asarray(c) for c in LOW), y),
    "signal.savgol_filter": lambda n, x, y: signal.savgol_filter(y, 7, 2),
    "signal.hilbert": lambda n, x, y: signal.hilbert(y),
    "signal.resample": lambda n, x, y: signal.resample(y, 27),
    "signal.resample_poly": lambda n, x, y: signal.resample_poly(y, 3, 2),
    "signal.upfirdn": lambda n, x, y: signal.upfirdn(x[:5, 0], y, up=2),
    "signal.medfilt": lambda n, x, y: signal.medfilt(y, 5),
    "signal.wiener": lambda n, x, y: signal.wiener(y, 5),
    "signal.freqz": lambda n, x, y: signal.freqz(*tuple(n.asarray(c) for c in LOW), worN=16)[1],
    "signal.zpk2tf": lambda n, x, y: signal.zpk2tf(x[:2, 0], x[:3, 1], 2.0)[1],
    "signal.windows.hann": lambda n, x, y: n.asarray(signal.windows.hann(9)),
    "ndimage.uniform_filter": lambda n, x, y: ndimage.uniform_filter(x, 3),
    "ndimage.median_filter": lambda n, x, y: ndimage.median_filter(x, 3),
    "ndimage.sobel": lambda n, x, y: ndimage.sobel(x),
    "ndimage.laplace": lambda n, x, y: ndimage.laplace(x),
    "ndimage.convolve1d": lambda n, x, y: ndimage.convolve1d(y, x[:3, 0]),
    "ndimage.zoom": lambda n, x, y: ndimage.zoom(x, 1.5),
    "ndimage.rotate": lambda n, x, y: ndimage.rotate(x, 30.0),
    "ndimage.map_coordinates": lambda n, x, y: ndimage.map_coordinates(x, 2 * n.abs(x[:2, :])),
    "ndimage.label": lambda n, x, y: ndimage.label(x > 0)[0],
    "ndimage.binary_erosion": lambda n, x, y: ndimage.binary_erosion(x > -1),
    "ndimage.grey_opening": lambda n, x, y: ndimage.grey_opening(x, 3),
    "ndimage.distance_transform_edt": lambda n, x, y: ndimage.distance_transform_edt(x > -1),
    "ndimage.sum_labels": lambda n, x, y: ndimage.sum_labels(
        x, ndimage.label(x > 0)[0], n.arange(4)
    ),
    "optimize.find_root": lambda n, x, y: (
        elementwise.find_root(
            lambda v, c: v**3 - c, (n.zeros_like(y) - 3, n.zeros_like(y) + 3), args=(y,)
        ).x
    ),
    "optimize.find_minimum": lambda n, x, y: (
        elementwise.find_minimum(
            lambda v, c: (v - c) ** 2, (y - 2.0, y + 0.5, y + 3.0), args=(y,)
        ).f_x
    ),
    "differentiate.derivative": lambda n, x, y: differentiate.derivative(n.sin, y).df,
    "differentiate.jacobian": lambda n, x, y: (
        differentiate.jacobian(lambda v: n.stack([v[0] * v[1], n.sin(v[0])]), y[:2]).df
    ),
    "interpolate.make_interp_spline": lambda n, x, y: interpolate.make_interp_spline(
        n.arange(40.0), y
    )(n.linspace(1.0, 30.0, 7)),
    "spatial.Rotation.apply": lambda n, x, y: spatial.transform.Rotation.from_rotvec(x).apply(x),
    "spatial.Rotation.as_euler": lambda n, x, y: spatial.transform.Rotation.from_rotvec(x).as_euler(
        "xyz"
    ),
    "spatial.Rotation.mean": lambda n, x, y: (
        spatial.transform.Rotation.from_rotvec(x).inv().mean().as_matrix()
    ),
    "spatial.RigidTransform": lambda n, x, y: spatial.transform.RigidTransform.from_translation(
        x
    ).apply(x[0, :]),
    "linalg.orthogonal_procrustes": lambda n, x, y: linalg.orthogonal_procrustes(x, x[::-1, :])[0],
    "stats.ttest_ind": lambda n, x, y: stats.ttest_ind(x[:, 0], y).pvalue,
    "stats.wilcoxon": lambda n, x, y: stats.wilcoxon(y).pvalue,
    "stats.mannwhitneyu": lambda n, x, y: stats.mannwhitneyu(x[:, 0], y).pvalue,
    "stats.rankdata": lambda n, x, y: stats.rankdata(x, axis=0),
    "stats.quantile": lambda n, x, y: stats.quantile(y, n.asarray([0.1, 0.5, 0.9])),
    "stats.entropy": lambda n, x, y: stats.entropy(n.abs(x), axis=0),
    "stats.differential_entropy": lambda n, x, y: stats.differential_entropy(y),
    "stats.bartlett": lambda n, x, y: stats.bartlett(x[:, 0], y).pvalue,
    "stats.chisquare": lambda n, x, y: (
        stats.chisquare(n.abs(y) / n.sum(n.abs(y)), n.ones(40) / 40).pvalue
    ),
    "stats.trim_mean": lambda n, x, y: stats.trim_mean(y, 0.1),
    "stats.circmean": lambda n, x, y: stats.circmean(x, axis=0),
    "stats.gstd": lambda n, x, y: stats.gstd(n.abs(x)),
    "special.betainc": lambda n, x, y: special.betainc(
        2.0 + n.abs(y), n.abs(y) + 1.0, special.expit(y)
    ),
    "special.erf": lambda n, x, y: special.erf(x),
    "special.ndtri": lambda n, x, y: special.ndtri(special.expit(x)),
    "special.rel_entr": lambda n, x, y: special.rel_entr(n.abs(x), n.abs(x) + 1.0),
    "special.i0": lambda n, x, y: special.i0(x),
    "special.chdtrc": lambda n, x, y: special.chdtrc(n.abs(x) + 1.0, n.abs(x)),
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
