-- Which threads free objects of others?
select alloc_thread, free_thread, count(*) as objects, sum(size) as bytes
from objects
where free_thread is not null and free_thread <> alloc_thread
group by alloc_thread, free_thread
order by bytes desc, alloc_thread, free_thread
limit 10
