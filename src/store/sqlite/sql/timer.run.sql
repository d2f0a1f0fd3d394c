-- read
select t.run, t.pos, t.purpose, t.tenant, t.status, t.due_at + case t.steady when 1 then :at - :steady else 0 end as due_at
from timers t where t.run = :run and +t.tenant = :tenant order by 6, t.pos limit :limit
