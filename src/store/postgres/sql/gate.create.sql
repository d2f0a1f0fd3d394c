-- fenced
-- The || as in run.settled.
insert into tape.gates(run, pos, tenant, name, status, binds, payload, approvers, opened_at)
select :run, :pos, r.tenant, :name, 'OPEN', :binds, :payload, :approvers, tape.now_ms() from tape.runs r where r.journal = :run and r.phase || '' = 'LIVE'
on conflict do nothing
