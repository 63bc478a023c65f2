"""Allocates in deep recursion and in generators."""
import sys

sys.setrecursionlimit(5000)


class Node:
    def __init__(self, depth, data):
        self.depth, self.data, self.children = depth, data, []


def build(depth):
    node = Node(depth, bytearray(600 + depth))
    if depth < 300:
        node.children.append(build(depth + 1))
    return node


def walk(node):
    yield len(node.data)
    for child in node.children:
        yield from walk(child)


def chunks(n):
    for k in range(n):
        yield bytes(1000 + k % 50)


def down(n):
    if n == 0:
        return sum(len(c) for c in chunks(2000))
    return down(n - 1)


total = 0
for _ in range(120):
    root = build(0)
    total += sum(walk(root))
    for n in (5, 40, 150):
        total += down(n)
print(total)
