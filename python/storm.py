# SPDX-License-Identifier: MIT
"""STORM for Python: WoDi, the work distributor. Master-workers programs whose workers may come and go.

    import storm

    def work(data):                     # a worker: bytes in, bytes out
        return data.upper()
    storm.wodi_worker(work)

    with storm.WodiMaster() as master:  # a master
        for step, result in master.map([b'a', b'b', b'c']):
            print(step, result)

Both find their server, storm-wodi, by the environment variable STORM_WODI. What is promised is what <storm/wodi.h> promises,
see docs/wodi.md: the master receives the result of each step exactly once, whatever is killed and started again.

Needs nothing but libstorm, which is looked for in STORM_LIB, beside this file as it is installed, and where the system has
its libraries.
"""
import ctypes
import errno
import glob
import os
import signal
import traceback

__all__ = ['WodiMaster', 'WodiWorker', 'WodiResult', 'WodiEvent', 'WodiError', 'wodi_worker']

BYTES_MAX = (1 << 20) - 1024


# ---- the library ----

def _find_library():
    here = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.join(here, '..', '..', '..', 'lib')
    return (os.environ.get('STORM_LIB') or
            next(iter(glob.glob(f'{beside}/libstorm.so.0') + glob.glob(f'{beside}/*/libstorm.so.0')), 'libstorm.so.0'))


class _Class(ctypes.Structure):
    _fields_ = [('need', ctypes.c_uint), ('speed', ctypes.c_double)]


class _Options(ctypes.Structure):
    _fields_ = [('server', ctypes.c_char_p), ('name', ctypes.c_char_p), ('init', ctypes.c_char_p),
                ('init_bytes', ctypes.c_size_t), ('classes', ctypes.POINTER(_Class)), ('class_count', ctypes.c_uint),
                ('fewest', ctypes.c_int), ('speed', ctypes.c_int), ('bench', ctypes.c_char_p),
                ('bench_bytes', ctypes.c_size_t), ('patience_s', ctypes.c_uint)]


class _Result(ctypes.Structure):
    _fields_ = [('cycle', ctypes.c_uint64), ('step', ctypes.c_uint64), ('status', ctypes.c_uint32), ('ns', ctypes.c_uint64),
                ('data', ctypes.c_void_p), ('bytes', ctypes.c_size_t)]


class _State(ctypes.Structure):
    _fields_ = [('cycle', ctypes.c_uint64), ('ended', ctypes.c_uint64), ('outstanding', ctypes.c_uint64)]


class _WorkerOptions(ctypes.Structure):
    _fields_ = [('server', ctypes.c_char_p), ('class_index', ctypes.c_uint), ('speed', ctypes.c_double),
                ('patience_s', ctypes.c_uint)]


class _Event(ctypes.Structure):
    _fields_ = [('kind', ctypes.c_int), ('master', ctypes.c_uint32), ('cycle', ctypes.c_uint64), ('step', ctypes.c_uint64),
                ('bench', ctypes.c_int), ('data', ctypes.c_void_p), ('bytes', ctypes.c_size_t)]


def _load():
    lib = ctypes.CDLL(_find_library())
    handle, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64
    for name, arguments, answer in (
            ('wodi_init', [ctypes.POINTER(handle), ctypes.POINTER(_Options)], ctypes.c_int),
            ('wodi_begin_cycle', [handle, number, ctypes.c_char_p, size, number], ctypes.c_int),
            ('wodi_sendwork', [handle, number, ctypes.c_char_p, size], ctypes.c_int),
            ('wodi_rcvresult', [handle, ctypes.POINTER(_Result)], ctypes.c_int),
            ('wodi_end_cycle', [handle, number, ctypes.c_char_p, size], ctypes.c_int),
            ('wodi_complete', [handle], ctypes.c_int),
            ('wodi_free', [handle], None),
            ('wodi_state', [handle, ctypes.POINTER(_State)], None),
            ('wodi_join', [ctypes.POINTER(handle), ctypes.POINTER(_WorkerOptions)], ctypes.c_int),
            ('wodi_rcvwork', [handle, ctypes.POINTER(_Event)], ctypes.c_int),
            ('wodi_sendresult', [handle, ctypes.c_uint32, ctypes.c_char_p, size], ctypes.c_int),
            ('wodi_leave', [handle], None)):
        function = getattr(lib, name)
        function.argtypes, function.restype = arguments, answer
    return lib


_library = None


def _lib():
    global _library
    _library = _library or _load()
    return _library


class WodiError(OSError):
    """The server is not there, does not know us, or was asked for what cannot be."""


def _check(status):
    if status < 0:
        raise WodiError(-status, os.strerror(-status))
    return status


def _text(value):
    return value.encode() if isinstance(value, str) else value


# ---- masters ----

class WodiResult:
    """One result: cycle, step, status (0, or what the worker says), ns (how long it took), data."""

    def __init__(self, r):
        self.cycle, self.step, self.status, self.ns = r.cycle, r.step, r.status, r.ns
        self.data = ctypes.string_at(r.data, r.bytes) if r.bytes else b''


class WodiMaster:
    """`init` is for every new worker. A master that is started again under the same name finds its work again."""

    def __init__(self, init=b'', name=None, server=None, workers=None, fewest=False, patience_s=0):
        one = _Class(workers or 1, 1.0)
        options = _Options(server=_text(server), name=_text(name), init=init, init_bytes=len(init), fewest=fewest,
                           classes=ctypes.pointer(one) if workers else None, class_count=1 if workers else 0,
                           patience_s=patience_s)
        self._handle = ctypes.c_void_p()
        _check(_lib().wodi_init(ctypes.byref(self._handle), ctypes.byref(options)))

    def begin_cycle(self, cycle, buffer=b'', steps=0):
        """True: it was ended already, in a former life of this master."""
        return _check(_lib().wodi_begin_cycle(self._handle, cycle, buffer, len(buffer), steps)) == 1

    def end_cycle(self, cycle, buffer=b''):
        return _check(_lib().wodi_end_cycle(self._handle, cycle, buffer, len(buffer))) == 1

    def send(self, step, work):
        """False: so many are under way that results must be received first."""
        status = _lib().wodi_sendwork(self._handle, step, work, len(work))
        return status != -errno.EAGAIN and _check(status) == 0

    def receive(self):
        """The next result, None if none is missing. The one before is acknowledged thereby."""
        r = _Result()
        return WodiResult(r) if _check(_lib().wodi_rcvresult(self._handle, ctypes.byref(r))) == 1 else None

    def results(self):
        """All results that are missing."""
        return iter(self.receive, None)

    def map(self, works):
        """Sends each as a step, numbered from 1, and yields (step, data) as results come. A step whose worker says that it
        failed raises RuntimeError with what the worker says."""
        for step, work in enumerate(works, 1):
            while not self.send(step, work):
                yield self._good(self.receive())
        for r in self.results():
            yield self._good(r)

    @staticmethod
    def _good(r):
        if r.status != 0:
            raise RuntimeError(f'step {r.step}: {r.data.decode(errors="replace")}')
        return r.step, r.data

    def state(self):
        """After a restart: the last cycle that was begun, the last that was ended, steps without results."""
        s = _State()
        _lib().wodi_state(self._handle, ctypes.byref(s))
        return s.cycle, s.ended, s.outstanding

    def complete(self):
        """There is no more work: the server forgets this master, and its workers end."""
        handle, self._handle = self._handle, None
        _check(_lib().wodi_complete(handle))

    def close(self):
        """Leaves the work to a later master of the same name."""
        if self._handle:
            _lib().wodi_free(self._handle)
        self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None and self._handle:
            self.complete()
        self.close()


# ---- workers ----

INIT, CYCLE_START, WORK, CYCLE_END, OVER = range(5)


class WodiEvent:
    """What a worker is told: kind (INIT, CYCLE_START, WORK, CYCLE_END, OVER), master, cycle, step, data."""

    def __init__(self, e):
        self.kind, self.master, self.cycle, self.step = e.kind, e.master, e.cycle, e.step
        self.data = ctypes.string_at(e.data, e.bytes) if e.bytes else b''


class WodiWorker:
    def __init__(self, server=None, class_index=0, speed=0.0, patience_s=0):
        options = _WorkerOptions(_text(server), class_index, speed, patience_s)
        self._handle = ctypes.c_void_p()
        _check(_lib().wodi_join(ctypes.byref(self._handle), ctypes.byref(options)))

    def receive(self):
        e = _Event()
        _check(_lib().wodi_rcvwork(self._handle, ctypes.byref(e)))
        return WodiEvent(e)

    def send(self, result, status=0):
        """The result of the step that was received last."""
        _check(_lib().wodi_sendresult(self._handle, status, result, len(result)))

    def leave(self):
        if self._handle:
            _lib().wodi_leave(self._handle)
        self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()


def _answer(worker, work, event):
    """An exception is a result, too: its master decides what is to be done."""
    try:
        worker.send(work(event.data))
    except WodiError:
        raise
    except Exception:
        worker.send(traceback.format_exc().encode()[-BYTES_MAX:], 1)


def wodi_worker(work, init=None, cycle_start=None, cycle_end=None, **options):
    """A worker as a loop, until no master is left that it has worked for: `work` makes bytes of bytes; the others, if they
    are given, are called with the master's buffers."""
    calls = {INIT: init, CYCLE_START: cycle_start, CYCLE_END: cycle_end}
    masters = 0
    former = signal.signal(signal.SIGINT, signal.SIG_DFL)   # the library waits where Python would not hear of it
    try:
        with WodiWorker(**options) as worker:
            while True:
                event = worker.receive()
                if event.kind == WORK:
                    _answer(worker, work, event)
                elif calls.get(event.kind):
                    calls[event.kind](event.data)
                masters += (event.kind == INIT) - (event.kind == OVER)
                if event.kind == OVER and masters <= 0:
                    return
    finally:
        signal.signal(signal.SIGINT, former)
