"""Load a library into this process, and close it when nothing refers to it any more.

A process that compiles one program after the other, as JAX's eager operations and fuzzing do, keeps
40 KiB for each library that stays.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cffi

from hlo.errors import ToolchainError

_INTERFACE = """
    typedef void hlo_entry(const void *const *arguments, void *const *results,
                           const unsigned char *constants, unsigned char *workspace, uint64_t seed);
    void *dlopen(const char *, int);
    void *dlsym(void *, const char *);
    int dlclose(void *);
    char *dlerror(void);
    typedef struct {
        const char *dli_fname; void *dli_fbase; const char *dli_sname; void *dli_saddr;
    } Dl_info;
    int dladdr(const void *, Dl_info *);
"""
_FFI = cffi.FFI()
_FFI.cdef(_INTERFACE)
_LINKER: Any = _FFI.dlopen(None)
# Found here, as to find a function forgets the last error.
_open, _close, _find, _error = _LINKER.dlopen, _LINKER.dlclose, _LINKER.dlsym, _LINKER.dlerror
_THREADS = b"omp_get_max_threads"  # a function that each OpenMP runtime has

_LIBGOMP = b"libgomp.so.1"
# Turns of libgomp's waiting loop before an idle thread sleeps: 100 to 280 microseconds, as long as
# a pause takes 65 to 140 cycles. A thread that sleeps takes 50 microseconds to wake on a virtual
# processor, more than most parallel regions of small models last. By libgomp's default, 300,000
# turns, a waiting thread has used up its share of a processor when another process wants one, and
# then each barrier lasts until the scheduler's next turn.
_TURNS, _FEW = "GOMP_SPINCOUNT", "5000"
# Names of the functions that tell and set the number of threads, of our team and of OpenMP.
_NUMBERS = (
    ("hlo_team_threads", "hlo_set_team_threads"),
    ("omp_get_max_threads", "omp_set_num_threads"),
)
_TEAM: list[Any] = []  # the process's team, once there is one
_JOINING = threading.Lock()
_CHOICES = ("OMP_WAIT_POLICY", _TURNS)  # by which users say how threads wait


class LoadedLibrary:
    """Hold a library open for as long as this object is referred to.

    What its parallel loops run on stays in the process, as idle threads wait in it: an OpenMP
    runtime, or the first library with a team of threads (:mod:`backend_c.native.thread_team`),
    which the libraries after it join. These threads run nothing of another library once a call of
    it has returned.
    """

    __slots__ = ("_handle",)

    def __init__(self, path: Path) -> None:
        """Open a library; raise ToolchainError if the loader rejects it."""
        with short_waits(os.environ):
            self._handle = _open(str(path).encode(), _FFI.RTLD_NOW)
        if not self._handle:
            told = _FFI.string(_error()).decode(errors="replace")
            raise ToolchainError(f"cannot load {path}: {told}")
        own = self.function("hlo_own_team", "const void *(*)(void)")
        if own is None:
            _keep(_find(self._handle, _THREADS))
        else:
            team = _the_team(own)
            self.function("hlo_join_team", "void (*)(const void *)")(team)

    def __del__(self, close: Any = _close) -> None:  # a default: names go when Python ends
        if self._handle:
            close(self._handle)

    def function(self, name: str, kind: str) -> Any:
        """Return a function as a pointer of a C type; None if there is none.

        It must not be called once nothing refers to the library.
        """
        place = _find(self._handle, name.encode())
        return _FFI.cast(kind, place) if place else None

    def thread_functions(self) -> tuple[Callable[[], int], Callable[[int], object]] | None:
        """Return the functions that tell and that set the number of threads of the calling thread's
        parallel loops; None if there are no such loops.

        They must not be called once nothing refers to the library.
        """
        for told, set_ in _NUMBERS:
            chosen, choose = (
                self.function(told, "int (*)(void)"),
                self.function(set_, "void (*)(int)"),
            )
            if chosen is not None and choose is not None:
                return chosen, choose
        return None

    def entry(self, number: int | None) -> Any:
        """Return the entry point of the only program, or of number ``number``."""
        if number is None:
            return self.function("hlo_entry", "hlo_entry *")
        return self.function("hlo_entries", "hlo_entry *const *")[number]


@contextmanager
def short_waits(environ: MutableMapping[str, str]) -> Iterator[None]:
    """Have a libgomp that is loaded meanwhile put idle threads to sleep soon, unless the
    environment says how they wait.

    libgomp reads the environment once, as it is loaded; there is no function for it.
    """
    if _is_loaded(_LIBGOMP) or any(name in environ for name in _CHOICES):
        yield
        return
    environ[_TURNS] = _FEW
    try:
        yield
    finally:
        environ.pop(_TURNS, None)


def _is_loaded(name: bytes) -> bool:
    """Test whether the process has loaded a library."""
    handle = _open(name, _FFI.RTLD_NOW | _FFI.RTLD_NOLOAD)
    return bool(handle) and _close(handle) == 0


def _the_team(own: Any) -> Any:
    """Return the process's team of threads: that of the first library that has one, kept loaded."""
    with _JOINING:
        if not _TEAM:
            _keep(own)
            _TEAM.append(own())
        return _TEAM[0]


def _keep(function: Any) -> None:
    """Open a function's library once more, so that it is never unloaded."""
    found = _FFI.new("Dl_info *")
    if function and _LINKER.dladdr(function, found):
        _open(found.dli_fname, _FFI.RTLD_NOW | _FFI.RTLD_NOLOAD | _FFI.RTLD_NODELETE)
