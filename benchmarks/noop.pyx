# cython: language_level=3
"""Floors: a method call that does nothing, and one pass of memchr. Compiled to a temporary folder by native.py."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memchr


cdef class Noop:
    def feed(self, data):
        pass


def newlines(list chunks):
    """How many newlines stand in the chunks, found by memchr, which can not be told to skip anything."""
    cdef Py_ssize_t found = 0
    cdef const char *p
    cdef const char *end
    cdef bytes chunk
    for chunk in chunks:
        p = PyBytes_AS_STRING(chunk)
        end = p + PyBytes_GET_SIZE(chunk)
        while True:
            p = <const char *>memchr(p, 10, end - p)
            if p == NULL:
                break
            found += 1
            p += 1
    return found
