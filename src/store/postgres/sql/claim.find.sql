-- read
select c.tenant, c.scope, c.business_key, c.run, c.pos,
  r.id as run_id from tape.claims c join tape.runs r on r.journal = c.run
where c.tenant = :tenant and c.scope = :scope and c.business_key = :business_key
