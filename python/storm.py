# SPDX-License-Identifier: MIT
"""STORM for Python: WoDi, the work distributor, and CARMI, hosts for a program that runs.

WoDi is for master-workers programs whose workers may come and go:

    import storm

    def work(data):                     # a worker: bytes in, bytes out
        return data.upper()
    storm.wodi_worker(work)

    with storm.WodiMaster() as master:  # a master
        for step, result in master.map([b'a', b'b', b'c']):
            print(step, result)

A master that runs as a job (storm run) and says how a worker is started, WodiMaster(worker=['./worker']), needs nothing else. Otherwise both
find their server, storm-wodi, by the environment variable STORM_WODI. What is promised is what <storm/wodi.h> promises, see
docs/wodi.md: the master receives the result of each step exactly once, whatever is killed and started again.

By CARMI a program of a job asks its cluster for hosts, starts processes there and gives them back:

    with storm.Carmi() as carmi:
        carmi.wait(carmi.define_class('large', 'MEMORY>=16GiB'))
        hosts = carmi.wait(carmi.addhosts('large', 1)).hosts
        for message in carmi.messages(carmi.host_spawn(['./simulate', '7'], hosts[0])):
            print(message.kind.name, message.status)
        carmi.wait(carmi.delhosts(hosts))

What is promised is what <storm/carmi.h> promises, see docs/carmi.md.

Needs nothing but libstorm, which is looked for in STORM_LIB, beside this file as it is installed, and where the system has
its libraries.
"""
import ctypes
import dataclasses
import enum
import errno
import glob
import math
import os
import signal
import threading
import time
import traceback

__all__ = ['WodiMaster', 'WodiWorker', 'WodiResult', 'WodiEvent', 'WodiError', 'wodi_worker',
           'Carmi', 'CarmiKind', 'CarmiMessage', 'CarmiProcess', 'CarmiClass', 'CarmiError']

BYTES_MAX = (1 << 20) - 1024


# ---- the library ----

def _find_library():
    here = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.join(here, '..', '..', '..', 'lib')
    return (os.environ.get('STORM_LIB') or
            next(iter(glob.glob(f'{beside}/libstorm.so.0') + glob.glob(f'{beside}/*/libstorm.so.0')), 'libstorm.so.0'))


class _Class(ctypes.Structure):
    _fields_ = [('need', ctypes.c_uint), ('speed', ctypes.c_double), ('least', ctypes.c_uint),
                ('expression', ctypes.c_char_p), ('processors', ctypes.c_uint)]


class _Options(ctypes.Structure):
    _fields_ = [('server', ctypes.c_char_p), ('name', ctypes.c_char_p), ('init', ctypes.c_char_p),
                ('init_bytes', ctypes.c_size_t), ('classes', ctypes.POINTER(_Class)), ('class_count', ctypes.c_uint),
                ('fewest', ctypes.c_int), ('speed', ctypes.c_int), ('bench', ctypes.c_char_p),
                ('bench_bytes', ctypes.c_size_t), ('patience_s', ctypes.c_uint),
                ('worker', ctypes.POINTER(ctypes.c_char_p)), ('folder', ctypes.c_char_p)]


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


class _CarmiAttribute(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('value', ctypes.c_char_p)]


class _CarmiClass(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('expression', ctypes.c_char_p), ('processors', ctypes.c_uint)]


class _CarmiProcess(ctypes.Structure):
    _fields_ = [('id', ctypes.c_uint64), ('host', ctypes.c_uint64), ('parent', ctypes.c_uint64),
                ('executable', ctypes.c_char_p)]


class _CarmiMessage(ctypes.Structure):
    _fields_ = [('kind', ctypes.c_int), ('tag', ctypes.c_int), ('request', ctypes.c_int64), ('last', ctypes.c_int),
                ('success', ctypes.c_int), ('error', ctypes.c_int), ('text', ctypes.c_char_p),
                ('host_count', ctypes.c_size_t), ('hosts', ctypes.POINTER(ctypes.c_uint64)),
                ('process', ctypes.c_uint64), ('status', ctypes.c_int), ('cpu_ns', ctypes.c_uint64),
                ('attribute_count', ctypes.c_size_t), ('attributes', ctypes.POINTER(_CarmiAttribute)),
                ('process_count', ctypes.c_size_t), ('processes', ctypes.POINTER(_CarmiProcess)),
                ('class_count', ctypes.c_size_t), ('classes', ctypes.POINTER(_CarmiClass)),
                ('count', ctypes.c_size_t), ('bytes', ctypes.c_size_t), ('data', ctypes.c_void_p)]


def _carmi_functions():
    """Of each its name, what it takes behind the handle, and what it answers."""
    request, host, count, tag = ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint, ctypes.c_int
    text, words = ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)
    hosts = [ctypes.c_size_t, ctypes.POINTER(host), tag]
    message, milliseconds = ctypes.POINTER(_CarmiMessage), ctypes.c_int
    calls = (('carmi_cancel_request', [request, tag]),
             ('carmi_config', [tag]),
             ('carmi_get_host_info', [host, tag]),
             ('carmi_addhosts', [text, count, count, tag]),
             ('carmi_delhosts', hosts),
             ('carmi_add_notify', [text, tag]),
             ('carmi_delete_notify', hosts),
             ('carmi_suspend_notify', hosts),
             ('carmi_resume_notify', hosts),
             ('carmi_class_spawn', [text, words, text, tag]),
             ('carmi_host_spawn', [text, words, host, tag]),
             ('carmi_process_info', [tag]),
             ('carmi_peers', [tag]),
             ('carmi_send', [host, tag, text, ctypes.c_size_t]),
             ('carmi_broadcast', [text, tag, text, ctypes.c_size_t]),
             ('carmi_get_class_definitions', [tag]),
             ('carmi_define_class', [ctypes.POINTER(_CarmiClass), tag]),
             ('carmi_remove_class', [text, tag]))
    others = (('carmi_exit', [], None),
              ('carmi_self', [], host),
              ('carmi_parent', [], host),
              ('carmi_fd', [], ctypes.c_int),
              ('carmi_next', [message], ctypes.c_int),
              ('carmi_receive', [message, milliseconds], ctypes.c_int),
              ('carmi_wait', [request, message, milliseconds], ctypes.c_int))
    return [(name, arguments, request) for name, arguments in calls] + list(others)


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
            ('wodi_leave', [handle], None),
            ('carmi_init', [ctypes.POINTER(handle)], ctypes.c_int),
            *((name, [handle, *arguments], answer) for name, arguments, answer in _carmi_functions())):
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


def _check(status, error=WodiError):
    if status < 0:
        raise error(-status, os.strerror(-status))
    return status


def _text(value):
    return value.encode() if isinstance(value, str) else value


class _Handle:
    """What the library knows us by. It must not be given one that it has freed."""
    _handle = None

    def _open(self):
        if not self._handle:
            raise ValueError('it is closed')
        return self._handle


# ---- masters ----

class WodiResult:
    """One result: cycle, step, status (0, or what the worker says), ns (how long it took), data."""

    def __init__(self, r):
        self.cycle, self.step, self.status, self.ns = r.cycle, r.step, r.status, r.ns
        self.data = ctypes.string_at(r.data, r.bytes) if r.bytes else b''


class WodiMaster(_Handle):
    """`init` is for every new worker. A master that is started again under the same name finds its work again.

    With `worker`, a list of words, a program of a job starts its own server, if there is none, and that starts this command on
    hosts: at most `workers` (None: as many as there are steps), at least `least`, with so many `processors` each, on nodes that
    the `expression` is true of. `folder` is the server's: the next run with the same one goes on."""

    def __init__(self, init=b'', name=None, server=None, workers=None, fewest=False, patience_s=0, worker=None, least=1,
                 expression=None, processors=1, folder=None):
        one = _Class(need=workers or 0, speed=1.0, least=least, expression=_string(expression), processors=processors)
        classes = 1 if workers or worker else 0
        options = _Options(server=_text(server), name=_text(name), init=init, init_bytes=len(init), fewest=fewest,
                           classes=ctypes.pointer(one), class_count=classes, patience_s=patience_s,
                           worker=_argv(worker)[1] if worker else None, folder=_string(folder))
        self._handle = ctypes.c_void_p()
        _check(_lib().wodi_init(ctypes.byref(self._handle), ctypes.byref(options)))

    def begin_cycle(self, cycle, buffer=b'', steps=0):
        """True: it was ended already, in a former life of this master."""
        return _check(_lib().wodi_begin_cycle(self._open(), cycle, buffer, len(buffer), steps)) == 1

    def end_cycle(self, cycle, buffer=b''):
        return _check(_lib().wodi_end_cycle(self._open(), cycle, buffer, len(buffer))) == 1

    def send(self, step, work):
        """False: so many are under way that results must be received first."""
        status = _lib().wodi_sendwork(self._open(), step, work, len(work))
        return status != -errno.EAGAIN and _check(status) == 0

    def receive(self):
        """The next result, None if none is missing. The one before is acknowledged thereby."""
        r = _Result()
        return WodiResult(r) if _check(_lib().wodi_rcvresult(self._open(), ctypes.byref(r))) == 1 else None

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
        _lib().wodi_state(self._open(), ctypes.byref(s))
        return s.cycle, s.ended, s.outstanding

    def complete(self):
        """There is no more work: the server forgets this master, and its workers end."""
        handle, self._handle = self._open(), None
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


class WodiWorker(_Handle):
    def __init__(self, server=None, class_index=0, speed=0.0, patience_s=0):
        options = _WorkerOptions(_text(server), class_index, speed, patience_s)
        self._handle = ctypes.c_void_p()
        _check(_lib().wodi_join(ctypes.byref(self._handle), ctypes.byref(options)))

    def receive(self):
        e = _Event()
        _check(_lib().wodi_rcvwork(self._open(), ctypes.byref(e)))
        return WodiEvent(e)

    def send(self, result, status=0):
        """The result of the step that was received last."""
        _check(_lib().wodi_sendresult(self._open(), status, result, len(result)))

    def leave(self):
        if self._handle:
            _lib().wodi_leave(self._handle)
        self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()


def _result(work, data):
    """Bytes and a status. An exception is a result, too, as is one that is too long to be sent: its master decides what is to be done. A
    worker that ended by it would only be followed by the next, with the same step."""
    try:
        result = work(data)
        if not isinstance(result, bytes):
            raise TypeError(f'the result of a step is bytes, not {type(result).__name__}')
        if len(result) > BYTES_MAX:
            raise ValueError(f'a result has {BYTES_MAX} bytes at most, not {len(result)}')
        return result, 0
    except Exception:
        return traceback.format_exc().encode(errors='replace')[-BYTES_MAX:], 1


def wodi_worker(work, init=None, cycle_start=None, cycle_end=None, **options):
    """A worker as a loop, until no master is left that it has worked for: `work` makes bytes of bytes; the others, if they
    are given, are called with the master's buffers."""
    calls = {INIT: init, CYCLE_START: cycle_start, CYCLE_END: cycle_end}
    masters = 0
    ours = threading.current_thread() is threading.main_thread()    # no other may say what signals do
    # The library waits where Python would not hear of it.
    former = signal.signal(signal.SIGINT, signal.SIG_DFL) if ours else None
    try:
        with WodiWorker(**options) as worker:
            while True:
                event = worker.receive()
                if event.kind == WORK:
                    worker.send(*_result(work, event.data))
                elif calls.get(event.kind):
                    calls[event.kind](event.data)
                masters += (event.kind == INIT) - (event.kind == OVER)
                if event.kind == OVER and masters <= 0:
                    return
    finally:
        if ours:
            signal.signal(signal.SIGINT, former)


# ---- hosts for a program that runs ----

class CarmiKind(enum.IntEnum):
    """What a message is about; behind each, the fields that say something."""
    CANCELLED = 0
    CONFIG = 1              # hosts
    HOST_INFO = 2           # hosts (one), attributes
    HOSTS_ADDED = 3         # hosts
    HOSTS_DELETED = 4       # hosts
    HOSTS_SUSPENDED = 5     # hosts
    HOSTS_RESUMED = 6       # hosts
    SPAWNED = 7             # process, hosts (one)
    EXITED = 8              # process, hosts (one), status, cpu_ns
    PROCESS_INFO = 9        # processes
    CLASSES = 10            # classes
    CLASS_DEFINED = 11
    CLASS_REMOVED = 12
    PEERS = 13              # processes
    SENT = 14               # process (0: it was a broadcast), count
    DATA = 15               # from another process; request 0; process, tag, data


class CarmiError(OSError):
    """A request was refused or could not be done: errno and strerror say why, `message` is the message that has said so.
    Or, without a message, it was not even asked."""
    message = None


@dataclasses.dataclass(frozen=True)
class CarmiProcess:
    id: int
    host: int
    parent: int         # 0: the program itself
    executable: str


@dataclasses.dataclass(frozen=True)
class CarmiClass:
    name: str
    expression: str = ''
    processors: int = 1


@dataclasses.dataclass(frozen=True)
class CarmiMessage:
    kind: CarmiKind
    tag: int
    request: int
    last: bool          # nothing more will be said of this request
    success: bool       # False: it was refused, or could not be done;
    error: int          # then an errno,
    text: str           # and why, in words
    hosts: tuple
    process: int
    status: int         # as a shell has it
    cpu_ns: int         # time of processors, user and system
    attributes: dict
    processes: tuple    # of CarmiProcess
    classes: tuple      # of CarmiClass
    count: int          # of processes that have got it
    data: bytes

    def check(self):
        """Itself if all is well, else it is raised as a CarmiError."""
        if self.success:
            return self
        error = CarmiError(self.error, f'{self.text} ({os.strerror(self.error)})')
        error.message = self
        raise error


def _message(m):
    """The library's message is valid until its next call: this is a copy."""
    text = os.fsdecode
    return CarmiMessage(
        kind=CarmiKind(m.kind), tag=m.tag, request=m.request, last=bool(m.last), success=bool(m.success), error=m.error,
        text=text(m.text), hosts=tuple(m.hosts[:m.host_count]), process=m.process, status=m.status, cpu_ns=m.cpu_ns,
        attributes={text(a.name): text(a.value) for a in m.attributes[:m.attribute_count]},
        processes=tuple(CarmiProcess(p.id, p.host, p.parent, text(p.executable)) for p in m.processes[:m.process_count]),
        classes=tuple(CarmiClass(text(c.name), text(c.expression), c.processors) for c in m.classes[:m.class_count]),
        count=m.count, data=ctypes.string_at(m.data, m.bytes) if m.bytes else b'')


def _fitting(number, kind):
    """The number itself: ctypes would cut off what does not fit."""
    if kind(number).value != number:
        raise OverflowError(f'{number} does not fit')
    return number


def _string(value):
    """Text, bytes, a path or None, as C has it: there it would end at its first NUL."""
    if value is None:
        return None
    value = os.fsencode(value)
    if b'\0' in value:
        raise ValueError(f'a NUL in {value}')
    return value


def _argv(command):
    """Words, or one alone, as C has them; the first is the program."""
    words = [_string(w) for w in ([command] if isinstance(command, (str, bytes, os.PathLike)) else command)]
    if not words or None in words:
        raise ValueError('a command needs words')
    return words[0], (ctypes.c_char_p * (len(words) + 1))(*words)


def _hosts(hosts):
    numbers = [_fitting(h, ctypes.c_uint64) for h in hosts]
    return len(numbers), (ctypes.c_uint64 * len(numbers))(*numbers)


class Carmi(_Handle):
    """A program's way to its cluster. Each request returns its number at once; what becomes of it arrives later, as messages
    that have this number and the tag. To be used by one thread at a time."""

    PART_S = 0.2        # Python hears of signals between waits of the library, not within them

    def __init__(self):
        self._handle = ctypes.c_void_p()
        status = _lib().carmi_init(ctypes.byref(self._handle))
        if status == -errno.ENOENT:
            raise CarmiError(errno.ENOENT, 'this process is not of a job; storm run starts those that are')
        _check(status, CarmiError)

    def _call(self, name, *arguments):
        handle = self._open()
        function = getattr(_lib(), f'carmi_{name}')
        for argument, kind in zip(arguments, function.argtypes[1:]):
            if isinstance(argument, int):
                _fitting(argument, kind)
        answer = function(handle, *arguments)
        return answer if function.restype is ctypes.c_uint64 else _check(answer, CarmiError)

    def close(self):
        """Hosts stay with the program until it ends, or another of its processes gives them back."""
        if self._handle:
            _lib().carmi_exit(self._handle)
        self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- messages ----

    def fileno(self):
        """For select, poll and asyncio: readable when next() may have a message."""
        return self._call('fd')

    def next(self):
        """The next message, None if there is none now."""
        m = _CarmiMessage()
        return _message(m) if self._call('next', ctypes.byref(m)) == 1 else None

    def receive(self, timeout=None):
        """Waits so many seconds for the next message of any request, None: for ever. None: it did not come in time."""
        return self._until(timeout, 'receive')

    def wait(self, request, timeout=None):
        """The same for one request, messages of others are kept. Raises a CarmiError if it was refused or could not be done,
        or if no such request is outstanding."""
        m = self._until(timeout, 'wait', request)
        return m and m.check()

    def messages(self, request):
        """All that is said of a request, as it comes, until the last. Raises as wait() does."""
        last = False
        while not last:
            m = self.wait(request)
            last = m.last
            yield m

    def _until(self, timeout, name, *request):
        end = math.inf if timeout is None else time.monotonic() + timeout
        m = _CarmiMessage()
        while True:
            left = min(max(end - time.monotonic(), 0), self.PART_S)
            if self._call(name, *request, ctypes.byref(m), math.ceil(1000 * left)) == 1:
                return _message(m)
            if time.monotonic() >= end:
                return None

    # ---- requests ----

    def cancel_request(self, request, tag=0):
        """Hosts that it has brought so far stay."""
        return self._call('cancel_request', request, tag)

    # ---- hosts ----

    def config(self, tag=0):
        """Hosts that the program has now."""
        return self._call('config', tag)

    def get_host_info(self, host, tag=0):
        """All that is known of a host, as attributes."""
        return self._call('get_host_info', host, tag)

    def addhosts(self, name, count, increment=1, tag=0):
        """So many more hosts of a class, `increment` at a time: a message for each group."""
        return self._call('addhosts', _string(name), count, increment, tag)

    def delhosts(self, hosts, tag=0):
        """Gives hosts back; processes there are ended."""
        return self._call('delhosts', *_hosts(hosts), tag)

    def add_notify(self, name=None, tag=0):
        """Until it is cancelled: hosts of a class, or of any, that come because of `storm run --class`."""
        return self._call('add_notify', _string(name), tag)

    def delete_notify(self, hosts=(), tag=0):
        """Until it is cancelled: hosts of these, or of all, that are lost."""
        return self._call('delete_notify', *_hosts(hosts), tag)

    def suspend_notify(self, hosts=(), tag=0):
        """Until it is cancelled: hosts of these, or of all, that are suspended."""
        return self._call('suspend_notify', *_hosts(hosts), tag)

    def resume_notify(self, hosts=(), tag=0):
        """Until it is cancelled: hosts of these, or of all, that go on."""
        return self._call('resume_notify', *_hosts(hosts), tag)

    # ---- processes ----

    def class_spawn(self, command, name, tag=0):
        """Starts a command, a list of words, on the host of a class that has the fewest. Two messages: SPAWNED, then EXITED."""
        executable, argv = _argv(command)
        return self._call('class_spawn', executable, argv, _string(name), tag)

    def host_spawn(self, command, host, tag=0):
        """The same on this very host."""
        return self._call('host_spawn', *_argv(command), host, tag)

    def process_info(self, tag=0):
        """Processes that were started so and have not ended."""
        return self._call('process_info', tag)

    # ---- messages between processes ----

    @property
    def self_id(self):
        """The number of this process, as others send to it."""
        return self._call('self')

    @property
    def parent(self):
        """The process that has spawned this one; 0: it was started with the program."""
        return self._call('parent')

    def peers(self, tag=0):
        """All processes of the program that messages can be sent to, this one among them."""
        return self._call('peers', tag)

    def send(self, process, data, tag=0):
        """Bytes for a process of this program: it receives them as DATA with this tag. SENT comes when it has them. Raises a
        CarmiError with EAGAIN if it has not taken what it was sent before."""
        data = bytes(data)
        return self._call('send', process, tag, data, len(data))

    def broadcast(self, data, name=None, tag=0):
        """The same to all processes on hosts of a class, or to all of the program, but this one; SENT has their count."""
        data = bytes(data)
        return self._call('broadcast', _string(name), tag, data, len(data))

    # ---- classes ----

    def get_class_definitions(self, tag=0):
        return self._call('get_class_definitions', tag)

    def define_class(self, name, expression='', processors=1, tag=0):
        """A name for hosts that are alike: the expression is as `storm run --need` takes it, '': any node."""
        definition = _CarmiClass(_string(name), _string(expression), _fitting(processors, ctypes.c_uint))
        return self._call('define_class', ctypes.byref(definition), tag)

    def remove_class(self, name, tag=0):
        return self._call('remove_class', _string(name), tag)
