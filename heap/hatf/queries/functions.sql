-- Which functions allocate, and how do their objects end?
select "function", "end_kind", count(*) as objects, sum(size) as bytes, max(size) as largest
from objects
group by "function", "end_kind"
order by objects desc, bytes desc, "function", "end_kind"
