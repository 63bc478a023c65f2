-- Which stacks allocate objects that the very next event frees?
select stack_hash, temporary_allocations, temporary_bytes, allocations
from sites
where temporary_allocations > 0
order by temporary_allocations desc, stack_hash
limit 10
