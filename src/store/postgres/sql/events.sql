-- name: lease.checkpoint
-- fenced
-- writes: leases
-- One statement compares the whole fence, as lease.renew does: it waits for a takeover and then finds no row. Not a key
-- column, so open guarded transactions of the holder do not delay it.
update tape.leases set checkpoint = :text
where journal = :journal and tenant is not distinct from :tenant and token = :token and nonce = :nonce and not doomed and kind = 'name'
  and tape.on_timeline();

-- name: fence.name
-- read
-- The fence of a write about a named lease, and its name. Locks as `fence` does.
select n.name from tape.leases l
cross join lateral (select n.name from tape.names n where n.journal = l.journal limit 1) n
where l.journal = :journal and l.tenant is not distinct from :tenant and l.token = :token and l.nonce = :nonce and not l.doomed
  and tape.on_timeline()
for key share of l;

-- name: dead_letter.put
-- fenced
-- writes: dead_letters
-- The same event again changes an open letter only: what an operator has settled stays settled.
insert into tape.dead_letters(tenant, sink, event, journal, seq, inbox, kind, at, attempts, code, error, state, changed_at)
values (:tenant, :sink, :event, :journal, :seq, :inbox, :kind, tape.now_ms(), :attempts, :code, :error, 'OPEN', tape.now_ms())
on conflict(tenant, sink, event) do update
set attempts = excluded.attempts, code = excluded.code, error = excluded.error, state = 'OPEN', changed_at = excluded.changed_at
where dead_letters.state in ('OPEN', 'REPLAY');

-- name: dead_letter.sent
-- fenced
-- writes: dead_letters
update tape.dead_letters set state = 'SENT', changed_at = tape.now_ms()
where tenant = :tenant and sink = :sink and event = :event and state = 'REPLAY';

-- name: dead_letter.settle
-- unfenced: an operator's order; the sink's holder carries it out under its own fence
-- writes: dead_letters
update tape.dead_letters set state = :to, changed_at = tape.now_ms()
where tenant = :tenant and sink = :sink and (state = 'OPEN' or (:to = 'DISCARDED' and state = 'REPLAY')) and event = any(array(
  select json_array_elements_text(:events::json)
  union all (select d.event from tape.dead_letters d
    where :events::text is null and d.tenant = :tenant and d.sink = :sink and d.state = 'OPEN' order by d.at, d.event limit :limit)));

-- name: dead_letter.list
-- read
select d.sink, d.event, d.journal, d.seq, d.inbox, d.kind, d.at, d.attempts, d.code, d.error, d.state
from tape.dead_letters d
where d.tenant = :tenant and d.sink = :sink and d.state = :state and (d.at, d.event) > (:after_at, :after_event)
order by d.at, d.event limit :limit;

-- name: dead_letter.purge
-- unfenced: settled letters are history, which is kept as long as finished runs are
-- writes: dead_letters
delete from tape.dead_letters d where d.tenant = :tenant and d.state in ('SENT', 'DISCARDED') and d.changed_at < :before;

-- name: sink.checkpoints
-- read
-- Of the leases whose names begin with "sink ": pruning keeps what a sink has not passed.
select l.checkpoint from tape.names n
cross join lateral (select l.checkpoint from tape.leases l where l.journal = n.journal limit 1) l
where n.tenant = :tenant and n.name > 'sink ' and n.name < 'sink!' and l.checkpoint is not null;

-- name: sink.list
-- read
select n.journal, n.name, (select count(*) from (
  select 1 from tape.dead_letters d where d.tenant = :tenant and d.sink = substr(n.name, 6) and d.state = 'OPEN' limit 10000) x) as letters
from tape.names n
where n.tenant = :tenant and n.name > 'sink ' || :above and n.name < 'sink!' order by n.name limit :limit;

-- name: subjects
-- read
-- What the records of these journals are about, in one query.
select i.journal, l.kind, n.name, r.id as run, r.workflow, r.version, r.labels, t.id as root, p.id as parent, e.pos, e.sub, e.name as effect
from (select distinct json_array_elements_text(:journals::json)::bigint as journal) i
cross join lateral (select l.kind, l.run from tape.leases l where l.journal = i.journal and l.tenant = :tenant limit 1) l
left join lateral (select r.id, r.workflow, r.version, r.labels, r.root, r.parent
  from tape.runs r where r.journal = l.run and l.kind in ('run', 'item') limit 1) r on true
left join lateral (select x.id from tape.runs x where x.journal = r.root limit 1) t on true
left join lateral (select x.id from tape.runs x where x.journal = r.parent limit 1) p on true
left join lateral (select n.name from tape.names n where n.journal = i.journal and l.kind = 'name' limit 1) n on true
left join lateral (select e.pos, e.sub, e.name from tape.effects e where e.item = i.journal and l.kind = 'item' limit 1) e on true;
