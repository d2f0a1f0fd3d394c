-- name: lease.checkpoint
-- fenced
-- writes: leases
-- One statement compares the whole fence, as lease.renew does.
update leases set checkpoint = :text
where journal = :journal and tenant = :tenant and token = :token and nonce = :nonce and doomed = 0 and kind = 'name';

-- name: fence.name
-- read
-- The fence of a write about a named lease, and its name.
select n.name from leases l cross join names n on n.journal = l.journal
where l.journal = :journal and l.tenant = :tenant and l.token = :token and l.nonce = :nonce and l.doomed = 0;

-- name: dead_letter.put
-- fenced
-- writes: dead_letters
-- The same event again changes an open letter only: what an operator has settled stays settled.
insert into dead_letters(tenant, sink, event, journal, seq, inbox, kind, at, attempts, code, error, state, changed_at)
values (:tenant, :sink, :event, :journal, :seq, :inbox, :kind, :at, :attempts, :code, :error, 'OPEN', :at)
on conflict(tenant, sink, event) do update
set attempts = excluded.attempts, code = excluded.code, error = excluded.error, state = 'OPEN', changed_at = excluded.changed_at
where dead_letters.state in ('OPEN', 'REPLAY');

-- name: dead_letter.sent
-- fenced
-- writes: dead_letters
update dead_letters set state = 'SENT', changed_at = :at
where tenant = :tenant and sink = :sink and event = :event and state = 'REPLAY';

-- name: dead_letter.settle
-- unfenced: an operator's order; the sink's holder carries it out under its own fence
-- writes: dead_letters
update dead_letters set state = :to, changed_at = :at
where tenant = :tenant and sink = :sink and (state = 'OPEN' or (:to = 'DISCARDED' and state = 'REPLAY')) and event in (
  select i.value from json_each(:events) i
  union all select x.event from (select d.event from dead_letters d
    where :events is null and d.tenant = :tenant and d.sink = :sink and d.state = 'OPEN' order by d.at, d.event limit :limit) x);

-- name: dead_letter.list
-- read
select d.sink, d.event, d.journal, d.seq, d.inbox, d.kind, d.at, d.attempts, d.code, d.error, d.state
from dead_letters d
where d.tenant = :tenant and d.sink = :sink and d.state = :state and (d.at, d.event) > (:after_at, :after_event)
order by d.at, d.event limit :limit;

-- name: dead_letter.purge
-- unfenced: settled letters are history, which is kept as long as finished runs are
-- writes: dead_letters
delete from dead_letters where tenant = :tenant and state in ('SENT', 'DISCARDED') and changed_at < :before;

-- name: sink.checkpoints
-- read
-- Of the leases whose names begin with "sink ": pruning keeps what a sink has not passed.
select l.checkpoint from names n cross join leases l on l.journal = n.journal
where n.tenant = :tenant and n.name > 'sink ' and n.name < 'sink!' and l.checkpoint is not null;

-- name: sink.list
-- read
select n.journal, n.name, (select count(*) from (
  select 1 from dead_letters d where d.tenant = :tenant and d.sink = substr(n.name, 6) and d.state = 'OPEN' limit 10000) x) as letters
from names n
where n.tenant = :tenant and n.name > 'sink ' || :above and n.name < 'sink!' order by n.name limit :limit;

-- name: subjects
-- read
-- What the records of these journals are about, in one query.
select i.journal, l.kind, n.name, r.id as run, r.workflow, r.version, r.labels, t.id as root, p.id as parent, e.pos, e.sub, e.name as effect
from (select distinct j.value as journal from json_each(:journals) j) i
cross join leases l on l.journal = i.journal and l.tenant = :tenant
left join runs r on r.journal = l.run and l.kind in ('run', 'item')
left join runs t on t.journal = r.root
left join runs p on p.journal = r.parent
left join names n on n.journal = i.journal and l.kind = 'name'
left join effects e on e.item = i.journal and l.kind = 'item';
