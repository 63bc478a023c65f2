-- Which stacks have most bytes at the end?
select stack_hash, leaked_allocations, leaked_bytes
from sites
where leaked_bytes > 0
order by leaked_bytes desc, stack_hash
limit 10
