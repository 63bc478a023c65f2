import io, random, pandas as pd
random.seed(7)
rows = 120_000
text = io.StringIO()
text.write("day,shop,item,amount\n")
for n in range(rows):
    text.write(f"2026-{n % 12 + 1:02}-{n % 28 + 1:02},shop{n % 37},item{random.randrange(900)},{random.random():.3f}\n")
text.seek(0)
frame = pd.read_csv(text, parse_dates=["day"])
by_item = frame.groupby(["shop", "item"])["amount"].agg(["sum", "mean", "count"]).reset_index()
joined = frame.merge(by_item, on=["shop", "item"])
joined["share"] = joined["amount"] / joined["sum"]
months = joined.assign(month=joined["day"].dt.month).pivot_table(index="item", columns="month", values="share", aggfunc="sum")
names = [f"{row.shop}/{row.item}" for row in by_item.itertuples()]
print(len(joined), len(by_item), months.shape, len(set(names)))
