-- fenced
insert into timers(run, pos, purpose, tenant, status, due_at)
select :run, :pos, :purpose, r.tenant, 'SET', coalesce(:until, :at + :in_ms) from runs r where r.journal = :run
on conflict do nothing
