-- fenced
insert into gates(run, pos, tenant, name, status, binds, payload, approvers, opened_at)
select :run, :pos, r.tenant, :name, 'OPEN', :binds, :payload, :approvers, :at from runs r where r.journal = :run and r.phase = 'LIVE'
on conflict do nothing
