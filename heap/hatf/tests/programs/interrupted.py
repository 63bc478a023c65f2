"""Calls functions while signals arrive. Their handler, in the library given as argument, maps pages, which are recorded with stacks."""
import ctypes
import sys
import threading


def leaf(number):
    return [number]


def work(number):
    return sum(len(leaf(each)) for each in range(number % 7))


library = ctypes.CDLL(sys.argv[1])
library.begin()
threads = [threading.Thread(target=lambda: [work(number) for number in range(4_000)]) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for number in range(8_000):
    work(number)
print(library.end())
