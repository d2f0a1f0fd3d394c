-- read
with m as materialized (
  select :run as journal union all select c.journal from tape.runs c where c.root = :run and c.parent is not null)
select m.journal, r.id, r.created_at, r.ended_at, l.token from m
cross join lateral (select r.id, r.created_at, r.ended_at from tape.runs r where r.journal = m.journal limit 1) r
cross join lateral (select cast(l.token as text) as token from tape.leases l where l.journal = m.journal limit 1) l
