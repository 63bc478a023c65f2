-- Which classes of hosts grow? By how many bytes does the peak of the second half of the events exceed that of the first half?
select
    class,
    count(*) as hosts,
    sum(most_in_first) as first_half_bytes,
    sum(most_in_second) as second_half_bytes,
    sum(most_in_second) - sum(most_in_first) as growth
from (
    select
        timeline.trace as trace,
        max(case when 2 * tick <= last_tick then max_live_bytes else 0 end) as most_in_first,
        max(case when 2 * tick > last_tick then max_live_bytes else 0 end) as most_in_second
    from timeline
    join (select trace, max(tick) as last_tick from timeline group by trace) as ends on timeline.trace = ends.trace
    group by timeline.trace
) as halves
join hosts on halves.trace = hosts.trace
group by class
order by growth desc, class
