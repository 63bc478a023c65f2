-- Whose memory would another allocator save most of? Pages at most, the sum over the hosts of a class.
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
