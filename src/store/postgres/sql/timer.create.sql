-- fenced
insert into tape.timers(run, pos, purpose, tenant, status, due_at)
select :run, :pos, :purpose, r.tenant, 'SET', coalesce(:until, tape.now_ms() + :in_ms) from tape.runs r where r.journal = :run
on conflict do nothing
