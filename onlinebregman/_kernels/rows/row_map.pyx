"""What is learned instead of rows: their images under a map that itself learns from the rows before.

A row is predicted and learned as the map sees it before the row, which the map then learns as well. A map belongs to
one learner or to several that learn the same rows, and takes part in their calls: `open` the rows, `begin`, map row
after row, check that all is `bounded`, or `undo`.
"""

from onlinebregman._kernels.rows.rows cimport Row, Rows


cdef class RowMap:
    """Base class of the maps of rows."""

    def key(self):
        """What maps of the same rows must have in common to have the same images."""
        raise NotImplementedError

    def share(self, RowMap other):
        """Share with another map, of the same rows and of another key, what both learn from them."""

    def in_units_of_data(self, coef, intercept):
        """Weights and intercept as they are shown, for those of images."""
        return coef, intercept

    cdef int open(self, Rows rows) except -1:
        """Check the width of rows, and allocate, as a part of them, what it takes to map one after the other."""
        if rows.n_columns != self.n_features:
            raise ValueError(
                f"rows must have {self.n_features} features, the number in the rows learned before; got "
                f"{rows.n_columns}"
            )
        return 0

    cdef Shape shape(self, Rows rows) noexcept nogil:
        """The shape of the images of rows."""
        return Shape(True, self.n_outputs, rows.n_rows * self.n_outputs)

    cdef void map_row(self, Rows rows, Row* row) noexcept nogil:
        """Replace a row by its image; the memory of the last image is used again."""

    cdef void map_to_learn(self, Rows rows, double weight, Row* row) noexcept nogil:
        """The same, and then learn the row, which counts as `weight` rows."""

    cdef bint bounded(self) noexcept nogil:
        """Whether all numbers are finite that the last call may have changed."""
        return True

    cdef int begin(self, Rows rows) except -1:
        """Before rows are learned: save what `undo` needs."""
        return 0

    cdef void undo(self) noexcept:
        """Return to the state from before the last call."""
