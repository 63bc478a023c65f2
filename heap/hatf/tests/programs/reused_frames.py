"""Allocates blocks of unique sizes from frames, code objects and strings that reuse memory, and prints them like frames.py."""
import functools
import os
import random
import signal
import sys
import threading

sizes = iter(range(700_001, 900_000, 7))


def size():
    return next(sizes)


def tell(block):
    frame, names = sys._getframe(1), []
    while frame is not None:
        code = frame.f_code
        names.append(f"{code.co_qualname}@{code.co_filename}:{frame.f_lineno}")
        frame = frame.f_back
    # The child writes to the same pipe.
    os.write(1, "\t".join([str(len(block) + 1), *names]).encode() + b"\n")


def leaf():
    tell(bytearray(size()))


def repeated(count):
    # The same stack several times, then another line.
    for _ in range(count):
        leaf()
    leaf()


def same_lengths():
    # Each code object is freed before the next one is compiled. Names, files and line tables have equal lengths, so the
    # next objects usually get the same addresses, and all frames are at the same addresses.
    for number in range(200):
        line = number % 5
        body = "\n" * line + " [tell(bytearray(size())) for _ in (1, 2, 3)]\n" + "\n" * (5 - line)
        source = f"def made_{number % 7}():\n{body}\nmade_{number % 7}()\n"
        exec(compile(source, f"made-{number % 3}.py", "exec"), {"tell": tell, "size": size})


def replaced():
    def made():
        tell(bytearray(size()))

    for number in range(60):
        name = f"name_{number % 4}"
        made.__code__ = made.__code__.replace(co_name=name, co_qualname=name, co_firstlineno=100 + number % 3)
        for _ in range(3):
            made()


def generator(count):
    for _ in range(count):
        leaf()
        yield leaf()


def generators():
    # The frame of a generator is in the generator, whose memory the next one reuses.
    for number in range(30):
        made = generator(3)
        next(made)
        if number % 2:
            list(made)
        else:
            next(made)
        del made


class Ready:
    def __await__(self):
        yield tell(bytearray(size()))


async def inner(number):
    if number % 3 == 0:
        leaf()
    await Ready()


async def outer(number):
    for _ in range(2):
        await inner(number)


def coroutines():
    for number in range(20):
        awaited = outer(number)
        awaited.send(None)
        if number % 2:
            awaited.send(None)
        awaited.close()


def raising(depth):
    try:
        if depth == 0:
            raise ValueError
        raising(depth - 1)
    finally:
        leaf()


def exceptions():
    for depth in [0, 1, 5, 5, 5, 2, 5, 0, 0]:
        try:
            raising(depth)
        except ValueError:
            leaf()


def explore(choices, depth):
    """Calls itself directly, and through functions written in C, and allocates at each depth."""
    for _ in range(choices.randrange(3)):
        leaf()
    if depth == 0:
        return
    kind = choices.randrange(4)
    if kind == 0:
        explore(choices, depth - 1)
    elif kind == 1:
        list(map(lambda each: explore(choices, depth - 1), range(choices.randrange(3))))
    elif kind == 2:
        functools.reduce(lambda _, each: explore(choices, depth - 1), range(3))
    else:
        exec("explore(choices, depth - 1)\ntell(bytearray(size()))", globals(), {"choices": choices, "depth": depth})
    leaf()


def handled(_number, _frame):
    leaf()


def signals():
    signal.signal(signal.SIGUSR1, handled)
    for _ in range(20):
        os.kill(os.getpid(), signal.SIGUSR1)
        leaf()


def forked():
    global sizes
    repeated(3)
    child = os.fork()
    if child == 0:
        # Other sizes than those of the parent.
        sizes = iter(range(900_001, 950_000, 7))
        repeated(3)
        same_lengths()
        os._exit(0)
    os.waitpid(child, 0)
    repeated(3)


def main():
    for count in range(5):
        repeated(count)
    same_lengths()
    replaced()
    generators()
    coroutines()
    exceptions()
    signals()
    for seed in range(12):
        explore(random.Random(seed), 6)
    threads = [threading.Thread(target=explore, args=(random.Random(seed), 5)) for seed in range(6)]
    threads += [threading.Thread(target=same_lengths) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    forked()


main()
