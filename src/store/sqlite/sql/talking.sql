-- name: callback.find
-- read
-- The gate that a callback's token names, whichever run has it: the token is the right.
select r.tenant, r.id, g.name, g.status, g.callback, g.called from gates g join runs r on r.journal = g.run
where g.run = :run and g.pos = :pos and g.callback is not null;

-- name: callback.secret
-- read
-- Only for the holder of this fence.
select m.secret from meta m where exists (select 1 from leases l where l.journal = :journal and l.tenant = :tenant
  and l.kind = 'run' and l.token = :token and l.nonce = :nonce and l.doomed = 0);

-- name: gate.call
-- unfenced: with the note of the callback; only the run's holder resolves the gate
-- writes: gates
update gates set called = :note where run = :run and pos = :pos and status = 'OPEN' and callback is not null and called is null;

-- name: meta.secret
-- read
select secret from meta;

-- name: published.list
-- read
select p.name, p.value, p.seq, p.at from published p
where p.run = (select r.journal from runs r where r.tenant = :tenant and r.id = :id) and p.name > :above and (:name is null or p.name = :name)
order by p.name limit :limit;

-- name: published.put
-- fenced
-- writes: published
insert into published(run, name, value, seq, at)
select :run, :name, :value, :seq, :at
where (select count(*) from published p where p.run = :run and p.name <> :name) < :max
on conflict(run, name) do update set value = excluded.value, seq = excluded.seq, at = excluded.at;

-- name: reply.create
-- fenced
-- writes: replies
-- Once, and only to a signal that the inbox has.
insert into replies(journal, n, body, at)
select :run, :note, :body, :at from records r where r.journal = -:run and r.seq = :note and r.kind = 'signal.sent'
on conflict do nothing;

-- name: reply.find
-- read
select x.n, x.body, x.at from replies x
where x.journal = (select r.journal from runs r where r.tenant = :tenant and r.id = :id) and x.n = :n;
