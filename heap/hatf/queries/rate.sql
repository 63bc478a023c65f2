-- How many bytes are allocated in each tenth of a second?
select alloc_ns - alloc_ns % 100000000 as since_ns, count(*) as objects, sum(size) as bytes
from objects
group by alloc_ns - alloc_ns % 100000000
order by since_ns
