-- Which classes would save the most memory with a different allocator? Peak size of pages, summed over the hosts of a class.
select
    class,
    allocator,
    count(*) as hosts,
    sum(held_now_bytes) as now_bytes,
    sum(held_now_bytes) - sum(held_bytes) as saved_bytes
from whatif
join hosts on whatif.trace = hosts.trace
group by class, allocator
order by saved_bytes desc, class, allocator
limit 10
