-- How long do objects live? `below_ns` bounds a class; objects that are never freed are not counted.
select below_ns, count(*) as objects, sum(size) as bytes
from (
    select
        size,
        case
            when lifetime_ns < 1000 then cast(1000 as bigint)
            when lifetime_ns < 10000 then cast(10000 as bigint)
            when lifetime_ns < 100000 then cast(100000 as bigint)
            when lifetime_ns < 1000000 then cast(1000000 as bigint)
            when lifetime_ns < 10000000 then cast(10000000 as bigint)
            when lifetime_ns < 100000000 then cast(100000000 as bigint)
            when lifetime_ns < 1000000000 then cast(1000000000 as bigint)
            else cast(9223372036854775807 as bigint)
        end as below_ns
    from objects
    where lifetime_ns is not null
) as classes
group by below_ns
order by below_ns
