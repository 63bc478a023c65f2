-- When were most bytes live, and how many?
select time_ns, live_bytes, live_objects
from timeline
where is_peak
