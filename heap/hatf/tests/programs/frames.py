"""Allocates blocks of unique sizes. Prints each size with its call stack: functions and lines, innermost first."""
import functools
import sys
import threading

sizes = iter(range(700_001, 800_000, 7))
lock = threading.Lock()


def size():
    return next(sizes)


def tell(block):
    frame, names = sys._getframe(1), []
    while frame is not None:
        code = frame.f_code
        names.append(f"{code.co_qualname}@{code.co_filename}:{frame.f_lineno}")
        frame = frame.f_back
    with lock:
        print(len(block) + 1, *names, sep="\t")


def leaf():
    tell(bytearray(size()))


def recursive(depth):
    if depth == 0:
        return leaf()
    return recursive(depth - 1)


class Shape:
    def __init__(self):
        self.block = bytearray(8)
        leaf()

    def __eq__(self, other):
        leaf()
        return True

    @property
    def area(self):
        return leaf()

    def grüße(self):
        tell(bytearray(size()))


def generator():
    for _ in range(3):
        tell(bytearray(size()))
        yield from inner()


def inner():
    yield leaf()


class Ready:
    def __await__(self):
        yield tell(bytearray(size()))


async def coroutine():
    await Ready()
    await Ready()


def keys():
    def key(number):
        tell(bytearray(size()))
        return -number

    return sorted(range(3), key=key)


def dynamic():
    # Each function is freed before the next one is compiled, which often reuses its memory.
    for number in range(40):
        lines = "\n" * (number % 5)
        source = f"{lines}def made_{number % 3}():\n  tell(bytearray(size()))\nmade_{number % 3}()\n"
        exec(compile(source, f"made-{number % 4}.py", "exec"), {"tell": tell, "size": size})


def thrown():
    try:
        raise ValueError
    except ValueError:
        leaf()
    finally:
        tell(bytearray(size()))


def main():
    recursive(0)
    recursive(40)
    assert Shape() == Shape()
    Shape().area
    Shape().grüße()
    list(generator())
    awaited = coroutine()
    awaited.send(None)
    awaited.send(None)
    keys()
    list(map(lambda _: leaf(), range(3)))
    functools.reduce(lambda _, n: tell(bytearray(size())), range(3))
    dynamic()
    thrown()
    threads = [threading.Thread(target=recursive, args=(3,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The interpreter specializes code that runs often.
    for _ in range(200):
        leaf()


main()
