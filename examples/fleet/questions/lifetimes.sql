-- How long do objects live on each class of hosts? Half of them live less than p50_ns, and so on; the bounds are powers of two.
select
    class,
    max(of_class) as objects,
    min(case when 2 * until_here >= of_class then below_ns end) as p50_ns,
    min(case when 10 * until_here >= 9 * of_class then below_ns end) as p90_ns,
    min(case when 100 * until_here >= 99 * of_class then below_ns end) as p99_ns
from (
    select
        class,
        below_ns,
        sum(objects) over (partition by class order by below_ns) as until_here,
        sum(objects) over (partition by class) as of_class
    from (
        select class, below_ns, sum(objects) as objects
        from lifetimes
        join hosts on lifetimes.trace = hosts.trace
        where below_ns is not null
        group by class, below_ns
    ) as counts
) as sums
group by class
order by class
