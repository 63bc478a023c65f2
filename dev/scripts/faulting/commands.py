"""Command lines of all commands that read or write files. `IN/` is the input directory."""

LINES = """
hatf record -q -o out.mtf IN/program 2000
hatf record -q --stacks --preset archive --no-resident -o out.mtf IN/program 2000
hatf record -q --no-resident --group 500 -o out.mtf IN/program 8000
hatf record -q -o - IN/program 1000
hatf run -o out.mtf IN/program 1000
hatf recover spool
hatf recover --keep spool -o out.mtf
hatf symbolize IN/heap.mtf -o out.mtf
hatf report IN/heap.mtf
hatf report IN/heap.mtf -o out.txt --svg out.svg
hatf report IN/heap.mtf --html out.html
hatf sites IN/heap.mtf --format svg -o out.svg
hatf sites IN/heap.mtf -o out.txt
hatf diff IN/other.mtf IN/heap.mtf --html out.html
hatf cut IN/heap.mtf --records 100..900 -o out.mtf
hatf cut IN/heap.mtf --sample 4096 -o out.mtf
hatf anonymize IN/heap.mtf -o out.mtf
hatf model fit IN/heap.mtf -m cdf -o out.json
hatf model generate IN/model.json --seed 7 -o out.mtf
hatf regions infer IN/heap.mtf -o out.mtf
hatf profile IN/heap.mtf -o out.mtf
hatf profile merge IN/heap.prof.mtf IN/heap.prof.mtf -o out.mtf
hatf convert IN/heap.prof.mtf out.memprof.yaml
hatf convert IN/heap.prof.mtf out.pb.gz
hatf convert IN/heap.mtf out.folded
hatf convert IN/heap.pb.gz out.prof.mtf
hatf convert --to heap IN/heap.mtf out.mtf
hatf convert --to heap IN/heap.mtf -
hatf convert --to heap IN/heap.jsonl out.mtf
hatf convert --to hatf10 IN/heap.mtf out.mtf
hatf convert --to hatf1 IN/heap.mtf out.hatf
hatf convert --to raw32 IN/heap.mtf out.raw32
hatf convert --to raw64 IN/heap.mtf out.raw64
hatf convert --to malloclab IN/heap.mtf out.rep
hatf convert --to jsonl IN/heap.mtf out.jsonl
hatf convert --to heaptrack IN/heap.mtf out.heaptrack
hatf convert --to firefox IN/heap.mtf out.firefox
hatf convert IN/heap.mtf IN/other.mtf out.mtf
hatf dump IN/other.mtf
hatf convert IN/heap.mtf --to parquet tables
hatf convert IN/heap.mtf --to arrow tables
hatf convert IN/heap.mtf --to csv tables
hatf convert IN/heap.mtf --to sqlite out.db
hatf replay IN/other.mtf -o out.txt --svg out.svg
hatf --install-docs share
metatfc new spans
metatfc fmt ugly.dtd
metatfc check --fix misspelt.dtd
metatfc gen IN/jobs.dtd -o out.rs
metatfc gen IN/jobs.dtd
metatfc gen --lang c IN/pools.dtd -o out.h
metatfc show IN/jobs.dtd --doc pages --trace IN/jobs.mtf
metatfc convert --dtd IN/jobs.dtd IN/jobs.jsonl out.mtf
metatfc convert --version 0 --dtd IN/jobs.dtd IN/jobs.jsonl out.mtf
metatfc convert --preset fast IN/jobs.mtf out.mtf
metatfc convert --preset archive IN/jobs.mtf out.mtf
metatfc convert --chunk 4K IN/packed.mtf -
metatfc convert jobs.mtf jobs.mtf
metatfc convert --raw --order little --dtd IN/jobs.dtd --section queue IN/jobs.raw out.mtf
metatfc sort IN/jobs.mtf -o out.mtf
metatfc sort --memory 1 IN/heap.mtf -o out.mtf --by size
metatfc sort --by time IN/jobs.mtf IN/packed.mtf -o out.mtf
metatfc convert IN/jobs.mtf --to parquet tables
metatfc convert IN/jobs.mtf --to arrow tables
metatfc convert IN/jobs.mtf --to csv tables
metatfc convert IN/jobs.mtf --record done out.parquet
metatfc convert IN/jobs.mtf --to sqlite out.sqlite
metatfc convert --dtd IN/jobs.dtd IN/csv/submit.csv IN/csv/done.csv out.mtf
metatfc convert --dtd IN/jobs.dtd IN/parquet/submit.parquet IN/parquet/done.parquet out.mtf
metatfc dump --dtd IN/jobs.dtd IN/plain.mtf
metatfc stat --spans IN/jobs.mtf --format html -o out.html
metatfc dump IN/jobs.mtf --format chrome
metatfc verify --salvage out.mtf IN/torn.mtf
metatfc --install-docs share
metatfc telemetry IN/buffers -o out.mtf
metatfc telemetry IN/buffers
IN/pools
"""

# Commands whose output differs between clean runs. Their outputs are compared by the number of records, or by their last bytes.
VARYING = ("hatf record", "hatf run", "hatf recover", "hatf anonymize", "hatf replay", "hatf convert IN/heap.mtf --to sqlite", "metatfc convert IN/jobs.mtf --to sqlite", "IN/pools")

# Expected exit statuses of commands that return another status than 0 without a fault.
STATUS = {"metatfc verify --salvage": 1}


class Command:
    """A command line and its properties."""

    def __init__(self, line):
        self.line = line
        self.words = line.split()
        self.varies = line.startswith(VARYING)
        self.status = next((status for begin, status in STATUS.items() if line.startswith(begin)), 0)
        # Output files, which replace existing files.
        self.outputs = [word for word in self.words if word.startswith("out.")]
        # Files that the command changes in place.
        self.changed = [word for word in self.words[2:] if word in ("jobs.mtf", "ugly.dtd", "misspelt.dtd")]
        # The example program from the book, which opens its trace at startup.
        self.is_program = line == "IN/pools"
        # The command reports everything before the corruption, with status 1.
        self.goes_to_damage = line.startswith("metatfc stat --spans")
        self.takes_spool = line.startswith("hatf recover")
        is_of_tables = any(word in line for word in ("csv", "arrow", "parquet", "sqlite"))
        self.needs_tables = self.words[1:2] == ["convert"] and is_of_tables
        # The command does not replace an existing output.
        is_database = self.needs_tables and self.outputs and self.outputs[0].endswith((".db", ".sqlite"))
        self.needs_none = is_database or line.startswith("hatf convert IN/heap.mtf IN/other.mtf")


COMMANDS = [Command(line) for line in LINES.strip().splitlines()]
