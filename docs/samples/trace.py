# region: one
import pandas as pd

request = pd.read_csv("request.csv", dtype="UInt64")
print(request.dtypes.to_string())
print("mean of took:", request["took"].mean(), "us")
# endregion

# region: all
columns = pd.read_csv("log.csv", nrows=0).columns
text = ["@section", "@record", "vfield"]
log = pd.read_csv("log.csv", dtype={c: "string" if c in text else "UInt64" for c in columns})
log["time"] = pd.to_timedelta(log["time"].astype("int64"), unit="ns")
print(log.groupby("@record")["time"].max().to_string())
# endregion

# region: threads
malloc = pd.read_csv("malloc.csv", dtype="UInt64")
print(malloc.groupby("thread")["size"].agg(["count", "sum"]).to_string())
# endregion
