-- Which stacks allocated most bytes?
select stack_hash, allocations, allocated_bytes, leaked_bytes
from sites
order by allocated_bytes desc, stack_hash
limit 10
