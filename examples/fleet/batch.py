"""A host that runs batch jobs: python3 batch.py SEED REQUESTS"""
import json
import random
import sys

seed, requests = int(sys.argv[1]), int(sys.argv[2])
draw = random.Random(seed)
results = {}
for number in range(requests // 20):
    batch = [{"id": draw.randrange(1000), "value": draw.random(), "text": "x" * draw.randrange(600)} for _ in range(20)]
    for row in json.loads(json.dumps(batch)):
        results[row["id"]] = row["text"] * 2
