"""Writes and reads JSON documents, which consist of many small objects."""
import json


def document(n):
    return {"id": n, "name": "item-%d" % n, "tags": ["a%d" % (n % 7), "b%d" % (n % 11)],
            "points": [[n + k, n * k * 1.5] for k in range(6)], "text": "x" * (600 + n % 400)}

kept = {}


def load(text, n):
    kept[n % 500] = json.loads(text)


def main():
    for n in range(40000):
        text = json.dumps(document(n))
        load(text, n)
    print(len(kept))


main()
