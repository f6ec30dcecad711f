# SPDX-License-Identifier: MIT

"""Marks for tlobd: a program names pieces of its own work, and tlobd(8) measures them.

    import tlob

    tlob.load("/usr/lib/myapp/marks.so")    # once, as the program starts

    with tlob.mark("handler"):              # a window of this thread
        ...

    @tlob.mark("step")                      # each call of a function
    def step(): ...

    with tlob.mark("query", key=request):   # a window that may end on any thread, or among
        await ...                           # other tasks of asyncio

The file has the marks by name, so that an administrator can give them a budget (Executable= and
Mark= in tlob.binding(5)). It is made once, when the program is installed or by itself:

    python3 -m tlob -o marks.so handler step query:key

Without that file, and while nobody listens, marks do nothing. They never raise an exception because
of tlobd: what is wrong is logged, once. tlob-mark-file(3) has the details.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import inspect
import logging
import os
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar, overload

__all__ = ["Mark", "Window", "load", "mark", "write"]

_F = TypeVar("_F", bound=Callable[..., Any])

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_marks: dict[str, Mark] = {}
_files: list[ctypes.PyDLL] = []


class Mark:
    """A mark of the program, as mark() returns it. It can be entered as often as one likes."""

    __slots__ = ("_begin", "_begin_key", "_end", "_end_key", "_listeners", "_name", "_warned")

    def __init__(self, name: str) -> None:
        self._name = name
        self._warned = False
        self._listeners: Sequence[int] = (0,)  # what the kernel counts in, once a file has it
        self._begin = self._end = self._begin_key = self._end_key = self._complain

    def __repr__(self) -> str:
        return f"tlob.mark({self._name!r})"

    @property
    def name(self) -> str:
        """Its name, as in Mark=."""
        return self._name

    def enabled(self) -> bool:
        """Whether anybody listens, for what is done only for the sake of the measurement."""
        return self._listeners[0] != 0

    # A call costs more than a look.
    def begin(self) -> None:
        """A window of this thread begins."""
        if self._listeners[0]:
            self._begin()

    def end(self) -> None:
        """It ends."""
        if self._listeners[0]:
            self._end()

    def begin_key(self, key: object) -> None:
        """A window of the process begins, which end_key() with the same key ends."""
        if self._listeners[0]:
            self._begin_key(_number(key))

    def end_key(self, key: object) -> None:
        """The window with that key ends."""
        if self._listeners[0]:
            self._end_key(_number(key))

    __enter__ = begin

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if self._listeners[0]:
            self._end()

    def __call__(self, function: _F) -> _F:
        """As a decorator: each call is a window. Those of coroutines have keys of their own."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{self!r} cannot decorate a generator, which is left at each yield: mark what is done "
                            "between two of them")
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                with Window(self, object()):
                    return await function(*args, **kwargs)
        else:
            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return function(*args, **kwargs)
        return wrapper  # type: ignore[return-value]

    def _attach(self, file: ctypes.PyDLL, path: str) -> None:
        """Takes the functions and the semaphore from a file that has a mark of that name."""
        try:
            words = (ctypes.c_uint16 * 4).in_dll(file, "tlob_mark_" + self._name)
        except ValueError:
            return
        if self._begin != self._complain or self._begin_key != self._complain:
            _log.warning("The mark '%s' is in several files, ignoring that in %s", self._name, path)
            return
        for suffix, arguments in ("", ()), ("_key", (ctypes.c_uint64,)):
            for side in "begin", "end":
                function = getattr(file, f"tlob_{side}{suffix}_{self._name}", None)
                if function:
                    function.argtypes, function.restype = arguments, None
                    setattr(self, f"_{side}{suffix}", function)
        self._listeners = memoryview(words).cast("B").cast("H")

    def _is_attached(self) -> bool:
        return isinstance(self._listeners, memoryview)

    def _complain(self, *_: int) -> None:
        """In place of the functions that the file has not, because its mark has a key, or has none."""
        if not self._warned:
            self._warned = True
            has_key = self._begin == self._complain
            _log.warning("The mark '%s' has %s in its file, but %s in the program, ignoring", self._name,
                         *("a key", "none") if has_key else ("no key", "one"))


class Window:
    """A window with a key, as mark(name, key=...) returns it."""

    __slots__ = ("_key", "_mark")

    def __init__(self, mark: Mark, key: object) -> None:
        self._mark = mark
        self._key = key  # which also keeps an object, and so its number, until the end

    def __enter__(self) -> None:
        self._mark.begin_key(self._key)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._mark.end_key(self._key)


class _Unmeasured(Window):
    """One that nobody listens to as it begins."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        pass


_unmeasured = _Unmeasured(Mark(""), None)


def _number(key: object) -> int:
    """An integer is its own key, all else is told apart as the object that it is."""
    return key if isinstance(key, int) else id(key)


@overload
def mark(name: str) -> Mark: ...


@overload
def mark(name: str, *, key: object) -> Window: ...


def mark(name: str, *, key: object = None) -> Mark | Window:
    """The mark of that name, or a window of it with a key: an integer, or the object that the work is done for.

    It may be called before load(), and returns the same mark each time. A window is to be entered at once.
    """
    found = _marks.get(name)
    if found is None:
        with _lock:
            found = _marks.get(name)
            if found is None:
                found = Mark(name)
                for file in _files:
                    found._attach(file, file._name)
                if _files and not found._is_attached():
                    _log.warning("The mark '%s' is in no file that was loaded, ignoring", name)
                _marks[name] = found
    if key is None:
        return found
    return Window(found, key) if found._listeners[0] else _unmeasured


def load(path: str | os.PathLike[str]) -> bool:
    """Loads a file of marks. If that fails, the marks do nothing, and it is logged; returns whether it did."""
    text = os.path.abspath(path)
    try:
        # It keeps the interpreter's lock: the functions are shorter than what it takes to give it away.
        file = ctypes.PyDLL(text)
    except (OSError, ValueError) as error:
        _log.warning("Failed to load the marks, ignoring: %s", error)
        return False
    with _lock:
        if all(other._handle != file._handle for other in _files):
            _files.append(file)
            for found in _marks.values():
                found._attach(file, text)
    return True


def write(path: str | os.PathLike[str], names: Sequence[str]) -> None:
    """Writes a file with marks of these names, for load(); "NAME:key" for one whose windows have keys.

    A file that is already as it should be is left alone. Raises ValueError for a name that is not possible, and
    OSError. It needs libtlob-mark.so.0, which load() does not.
    """
    library = ctypes.CDLL("libtlob-mark.so.0")
    library.tlob_mark_file_write.argtypes = (ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t,
                                             ctypes.POINTER(ctypes.c_size_t))
    encoded = [name.encode("utf-8", "surrogateescape") for name in names]
    wrong = ctypes.c_size_t()
    for name, text in zip(names, encoded):
        if b"\0" in text:
            raise ValueError(f"{name!r} is not the name of a mark")
    result = library.tlob_mark_file_write(os.fsencode(path), (ctypes.c_char_p * len(encoded))(*encoded), len(encoded),
                                          ctypes.byref(wrong))
    if result == -errno.EINVAL and wrong.value < len(names):
        name = names[wrong.value]
        if name.partition(":")[0] in (other.partition(":")[0] for other in names[:wrong.value]):
            raise ValueError(f"The mark {name!r} is there twice")
        raise ValueError(f"{name!r} is not the name of a mark: write a name in C of at most 128 characters, with ':key' "
                         "behind it if its windows have keys")
    if result < 0:
        raise OSError(-result, os.strerror(-result), os.fspath(path))
