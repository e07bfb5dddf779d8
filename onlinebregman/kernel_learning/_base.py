"""Base class of the kernel learners: a density matrix W in the log domain, predictions z'Wz, and an embedding."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.extmath import svd_flip

from .._kernels.matrices.von_neumann import VonNeumannGeometry
from .._online.estimator import Call, Examples, LearnsMatrix, OnlineEstimator
from .._online.types import MatrixLike
from .._online.validation import check_query, check_rows, check_symmetric, check_vector, finite, read_only
from ._instances import EPS, Array, Matrices, Rows, check_matrices, pair_rows


class Instances(Examples):
    """Instances of the prediction tr(W X), their targets or bounds, and their weights."""

    X: Rows

    def __len__(self) -> int:
        return len(self.X)


class KernelTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RegressorMixin, LearnsMatrix):
    """What learners of a matrix W share that predict z'Wz of rows z."""

    _takes_sparse = True

    @finite("mapping")
    def transform(self, X: MatrixLike) -> np.ndarray:
        """Map rows to a space in which their inner product is x'Wz: X @ components_.T.

        The rows of the identity matrix give an embedding of the objects: points whose inner products are the kernel.
        The columns are sorted by decreasing eigenvalue.

        Parameters
        ----------
        {X}

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features)
            The mapped rows.
        """
        return check_query(self, X) @ self.components_.T

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # z'Wz lies between 0 and |z|^2, targets need not
        return tags


class KernelLearner(KernelTransformer, OnlineEstimator):
    """Learner of a positive definite W of trace one, the kernel between n_features_in_ objects.

    Attributes
    ----------
    kernel_ : ndarray of shape (n_features, n_features)
        W, positive definite of trace one.
    log_kernel_ : ndarray of shape (n_features, n_features)
        log W.
    components_ : ndarray of shape (n_features, n_features)
        L' with W = L L'; its rows are the principal directions, longest first.
    divergence_ : VonNeumann
        The divergence of the estimator.

    Raises
    ------
    ValueError
        From `fit`, `partial_fit` and their like, for invalid input: values that are not finite, a wrong number of
        features, objects out of range, negative distances, asymmetric matrices. The model is then unchanged.
    """

    _parameter_constraints: dict = {"init": ["array-like", None]}

    @finite("prediction")
    def predict(self, X: MatrixLike) -> np.ndarray:
        """z'Wz for each row z; for rows (e_a - e_b) / sqrt(2) half the squared distance of the objects a and b.

        Parameters
        ----------
        {X}

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predictions, >= 0.
        """
        return Rows(check_query(self, X)).dot(self._fitted_geometry().factor)

    def pairwise_distances(self, *, squared: bool = True) -> np.ndarray:
        """Distances between all objects in the feature space of the kernel.

        Parameters
        ----------
        squared : bool, default=True
            Return W_aa + W_bb - 2 W_ab, which is twice the half squared distances used as targets of pairs. False:
            return its square root, for `metric="precomputed"` of scikit-learn's neighbours and clusterers.

        Returns
        -------
        distances : ndarray of shape (n_features, n_features)
            Symmetric, zero on the diagonal.
        """
        kernel = self.kernel_
        distances = np.maximum(np.add.outer(kernel.diagonal(), kernel.diagonal()) - 2 * kernel, 0.0)
        return distances if squared else np.sqrt(distances)

    @read_only
    def kernel_(self) -> np.ndarray:
        """W, shape (n_features, n_features): symmetric positive semidefinite, trace one; a read-only copy."""
        return self._fitted_geometry().coef()

    @read_only
    def log_kernel_(self) -> np.ndarray:
        """The logarithm of W, shape (n_features, n_features), as stored; a read-only copy."""
        return self._fitted_geometry().log_coef

    @read_only
    def components_(self) -> np.ndarray:
        """L' with W = L L', shape (n_features, n_features); rows are the principal directions, longest first."""
        factor, _ = svd_flip(self._fitted_geometry().factor[:, ::-1], None)
        return factor.T

    def _fitted_geometry(self) -> VonNeumannGeometry:
        """The geometry that holds W."""
        return self._fitted_state().geometry

    # --- learning -------------------------------------------------------------------------------------------------

    def _first_kernel(self) -> Array:
        """W_1."""
        d = self.n_features_in_
        if self.init is None:
            return np.eye(d) / d
        init = check_symmetric(self.init, "init", d)
        values = np.linalg.eigvalsh(init)
        if not values[0] > d * EPS * values[-1]:
            raise ValueError(
                f"init is not positive definite (smallest eigenvalue {values[0]:g}, largest {values[-1]:g}), and has "
                "no logarithm; add a multiple of the identity."
            )
        return init / np.trace(init)

    # --- checks ---------------------------------------------------------------------------------------------------

    def _check_rows(self, call: Call, X, y) -> tuple[Rows, Array]:
        X, y = check_rows(self, X, y=y, reset=call.first)
        return Rows(X), y

    def _check_object_pairs(self, call: Call, pairs, distances, n_objects) -> tuple[Rows, Array]:
        if n_objects is None:
            if call.first:
                raise ValueError("n_objects must be given in the first call.")
            n_objects = self.n_features_in_
        rows = pair_rows(pairs, n_objects)
        self._check_size(rows.shape[1], "n_objects is", call)
        distances = check_vector(distances, rows.shape[0], "distances", "pairs")
        if (distances < 0).any():
            row = int(np.argmax(distances < 0))
            raise ValueError(f"distances[{row}] = {distances[row]:g} is negative; give half squared distances, >= 0.")
        return Rows(rows), distances

    def _check_symmetric(self, call: Call, matrices, name: str) -> Matrices:
        matrices = check_matrices(matrices, name)
        self._check_size(matrices.shape[1], f"{name} has matrices of size", call)
        return Matrices(matrices)

    def _check_size(self, d: int, what: str, call: Call) -> None:
        if call.first:
            self.n_features_in_ = d
            self.__dict__.pop("feature_names_in_", None)
        elif d != self.n_features_in_:
            raise ValueError(
                f"{what} {d}, but this {type(self).__name__} has learned a kernel of {self.n_features_in_} objects."
            )
