# Builds, serializes and parses small objects in four Python threads, ROUNDS times each: threads.py ROUNDS
import json
import queue
import random
import re
import sys
import threading

ROUNDS = int(sys.argv[1])


def work(number, done):
    rng = random.Random(number)
    table = {}
    for i in range(ROUNDS):
        table["k%d" % rng.randrange(2000)] = {
            "i": i,
            "l": [rng.random() for _ in range(rng.randrange(8))],
            "s": "x" * rng.randrange(60),
        }
        if i % 50 == 0:
            done.put(json.loads(json.dumps(table[next(iter(table))])))
        if i % 500 == 0:
            re.findall(r"(\d+)\.(\d+)", json.dumps(list(table.values())[:50]))
    done.put(len(table))


done = queue.Queue()
threads = [threading.Thread(target=work, args=(number, done)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
