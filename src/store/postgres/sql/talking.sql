-- name: callback.find
-- read
-- The gate that a callback's token names, whichever run has it: the token is the right.
select r.tenant, r.id, g.name, g.status, g.callback, g.called from tape.gates g
cross join lateral (select r.tenant, r.id from tape.runs r where r.journal = g.run limit 1) r
where g.run = :run and g.pos = :pos and g.callback is not null;

-- name: callback.secret
-- read
-- Only for the holder of this fence.
select m.secret from tape.meta m where exists (select 1 from tape.leases l where l.journal = :journal
  and l.tenant is not distinct from :tenant and l.kind = 'run' and l.token = :token and l.nonce = :nonce and not l.doomed and tape.on_timeline());

-- name: gate.call
-- unfenced: with the note of the callback; only the run's holder resolves the gate
-- writes: gates
update tape.gates set called = :note where run = :run and pos = :pos and status || '' = 'OPEN' and callback is not null and called is null;

-- name: meta.secret
-- read
select secret from tape.meta;

-- name: published.list
-- read
select p.name, p.value, p.seq, p.at from tape.published p
where p.run = (select r.journal from tape.runs r where r.tenant = :tenant and r.id = :id) and p.name > :above and (:name::text is null or p.name = :name)
order by p.name limit :limit;

-- name: published.put
-- fenced
-- writes: published
insert into tape.published(run, name, value, seq, at)
select :run::bigint, :name::text, :value, :seq, tape.now_ms()
where (select count(*) from tape.published p where p.run = :run and p.name <> :name) < :max
on conflict(run, name) do update set value = excluded.value, seq = excluded.seq, at = excluded.at;

-- name: reply.create
-- fenced
-- writes: replies
-- Once, and only to a signal that the inbox has.
insert into tape.replies(journal, n, body, at)
select :run, :note, :body, tape.now_ms() from tape.records r where r.journal = -:run::bigint and r.seq = :note and r.kind = 'signal.sent'
on conflict do nothing;

-- name: reply.find
-- read
select x.n, x.body, x.at from tape.replies x
where x.journal = (select r.journal from tape.runs r where r.tenant = :tenant and r.id = :id) and x.n = :n;
