from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.loop.abreast cimport Abreast
from onlinebregman._kernels.loop.atomic cimport Ensemble
from onlinebregman._kernels.rows.rows cimport Row


cdef class MultiLearner(Ensemble):
    cdef bint summed
    cdef bint separate        # is there a target for each learner, or one for all?
    cdef Py_ssize_t n
    cdef void** members
    cdef Abreast abreast      # if they all can
