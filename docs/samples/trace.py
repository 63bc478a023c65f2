# region: one
import pandas as pd

types = {"path": "string", "time": "UInt64", "status": "UInt64", "took": "UInt64"}
request = pd.read_csv("request.csv", usecols=types.keys(), dtype=types)
print(request.dtypes.to_string())
print("mean of took:", request["took"].mean(), "us")
# endregion
