-- How large are objects? `upto` is the largest size of a class.
select upto, count(*) as objects, sum(size) as bytes
from (
    select
        size,
        case
            when size <= 16 then cast(16 as bigint)
            when size <= 64 then cast(64 as bigint)
            when size <= 256 then cast(256 as bigint)
            when size <= 1024 then cast(1024 as bigint)
            when size <= 4096 then cast(4096 as bigint)
            when size <= 65536 then cast(65536 as bigint)
            else cast(9223372036854775807 as bigint)
        end as upto
    from objects
) as classes
group by upto
order by upto
