-- fenced
insert into timers(run, pos, purpose, tenant, status, due_at, steady)
select :run, :pos, :purpose, r.tenant, 'SET', coalesce(:until, :steady + :in_ms), :until is null from runs r where r.journal = :run
on conflict do nothing
