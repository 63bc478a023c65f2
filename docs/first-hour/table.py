"""Reads the requests as a table, and prints how many there are and how long they took together."""

import sys

import pandas

requests = pandas.read_csv(sys.argv[1])
took = requests.columns[-1]
print(f"({len(requests)}, {requests[took].sum()})")
print(requests.groupby("status")[took].describe(), file=sys.stderr)
