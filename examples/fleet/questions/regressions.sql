-- Which build has a function that allocates over 20% more than in another build of the same class? Bytes per 1,000 objects of the hosts.
with builds as (
    select class, build_id, count(*) as hosts, sum(allocations) as objects, sum(allocated_bytes) as bytes
    from traces
    join hosts on traces.trace = hosts.trace
    group by class, build_id
),
of_functions as (
    select class, build_id, own_function, sum(sites.allocated_bytes) as bytes
    from sites
    join traces on sites.trace = traces.trace
    join hosts on sites.trace = hosts.trace
    where own_function is not null
    group by class, build_id, own_function
),
rates as (
    select
        builds.class as class,
        builds.build_id as build_id,
        own_function,
        hosts,
        cast(of_functions.bytes as double) / cast(builds.bytes as double) as share,
        cast(floor(cast(of_functions.bytes as double) * 1000 / cast(objects as double)) as bigint) as rate
    from of_functions
    join builds on of_functions.class = builds.class and of_functions.build_id = builds.build_id
)
select
    m.class as class,
    m.own_function as own_function,
    m.build_id as build_id,
    m.hosts as hosts,
    m.rate as rate,
    l.build_id as than_build_id,
    l.rate as than_rate
from rates as m
join rates as l on m.class = l.class and m.own_function = l.own_function
where m.build_id <> l.build_id and 5 * m.rate > 6 * l.rate and 100 * m.share >= 1
order by m.rate - l.rate desc, m.class, m.own_function, m.build_id, l.build_id
