-- read
select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at + case t.steady when 1 then :at - :steady else 0 end as due_at
from timers t where t.tenant = :tenant and (:run is null or t.run = :run) order by 6, t.run, t.pos limit :limit
