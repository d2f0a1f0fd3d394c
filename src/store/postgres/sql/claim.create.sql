-- fenced
insert into tape.claims(tenant, scope, business_key, run, pos)
select r.tenant, :scope, :business_key, :run, :pos from tape.runs r where r.journal = :run
on conflict do nothing
