-- Which stacks allocate the most bytes across all hosts?
select
    stack_hash,
    max(own_function) as own_function,
    count(distinct trace) as hosts,
    sum(allocations) as objects,
    sum(allocated_bytes) as bytes
from sites
group by stack_hash
order by bytes desc, stack_hash
limit 10
