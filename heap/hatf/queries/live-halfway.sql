-- Which stacks have the memory after half of all events?
select stack_hash, count(*) as objects, sum(size) as bytes
from (select stack_hash, size, alloc_tick, end_tick, max(alloc_tick) over () as last_tick from objects) as bounded
where 2 * alloc_tick <= last_tick and (end_tick is null or 2 * end_tick > last_tick)
group by stack_hash
order by bytes desc, stack_hash
limit 10
