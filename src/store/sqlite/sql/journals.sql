-- name: feed.frontier
-- read
select max(id) as id from records;

-- name: feed.key
-- read
select cursor_key as key from meta;

-- name: feed.page
-- read
-- Not beyond :edge: a query for one tenant scans a bounded number of records.
select r.id, r.journal, r.seq, cast(r.token as text) as token, r.at, r.kind, r.body from records r
where r.id > :after and r.id <= :edge and (:tenant is null or exists (
  select 1 from leases l where l.journal = abs(r.journal) and l.tenant = :tenant))
order by r.id limit :limit;

-- name: feed.tenants
-- read
-- The tenants with records between two positions of the feed: one query for all that follow it. The feed waits for no
-- transaction, because none overlap.
select l.tenant, min(r.id) as first, max(r.id) as last, null as holder from records r cross join leases l on l.journal = abs(r.journal)
where r.id > :after and r.id <= :edge group by l.tenant;

-- name: journal.head
-- read
select coalesce(max(seq), 0) as head from records where journal = :journal;

-- name: journal.page
-- read
-- The tenant is given if the target named a journal: then another tenant's journal has no records.
select journal, seq, cast(token as text) as token, at, kind, body from records
where journal = :journal and seq >= :from
  and (:tenant is null or (select l.tenant from leases l where l.journal = abs(:journal)) = :tenant)
order by seq limit :limit;

-- name: journal.terms
-- read
-- Of a run that has continued as new: from about the generation before the current one on.
select journal, seq, cast(token as text) as token, at, kind, body from records
where journal = :journal and seq >= (select max(1, l.begins - 100000) from leases l where l.journal = :journal) and kind in ('run.created', 'term.started', 'term.ended', 'run.ended') order by seq;

-- name: journals.block
-- unfenced: journal numbers are issued in blocks; unused ones are lost, which does no harm
-- writes: meta
update meta set next_journal = next_journal + :size returning next_journal - :size as first;

-- name: note.count
-- unfenced: an inbox has many writers and no lease; the counter is what parking and ending compare
-- writes: leases
-- A run without a holder is wanted at once, unless it waits in a queue. An item that already waits for a reactor keeps
-- waiting for that one.
update leases set notes = notes + 1,
  next_reactor = case when owner is not null or doomed = 1 or $in_queue then next_reactor when kind = 'run' then $recovery_of else coalesce(next_reactor, 'reconciler') end,
  due_at = case when owner is null and doomed = 0 and not $in_queue and (kind = 'run' or next_reactor is null) then :now else due_at end
where journal = :journal and tenant = :tenant and open = 1
returning notes, begins_notes, kind, tenant, workflow, queue, owner, case when owner is null then next_reactor end as wakes;

-- name: note.create
-- unfenced: see note.count
-- writes: records
insert into records(journal, seq, token, at, kind, body) values (-:journal, :seq, 0, :at, :kind, :body);

-- name: note.find
-- read
select n from note_keys where journal = :journal and key = :key;

-- name: note.key
-- unfenced: remembers a signal's key, so that a repeat is not a second signal
-- writes: note_keys
-- Written with n = 0 before the note is sent, so that senders of one key queue here; then with the note's number.
insert into note_keys(journal, key, n) values (:journal, :key, :n)
on conflict(journal, key) do update set n = excluded.n where note_keys.n = 0;

-- name: record.append
-- fenced
-- writes: records
-- A plain insert after the fence has matched: INSERT … SELECT from the table it inserts into is materialised and costs
-- twice as much, RETURNING three times.
insert into records(journal, seq, token, at, kind, body) values (:journal, :seq, :token, :at, :kind, :body);

-- name: record.create
-- fenced
-- writes: records
-- The first record of a journal that the fenced write opens.
insert into records(journal, seq, token, at, kind, body) values (:journal, :seq, :token, :at, :kind, :body);

-- name: witness.create
-- unfenced: proves, after a lost response, whether the batch of this name was committed
-- writes: witness
insert into witness(id, at) values (:id, :at);

-- name: witness.find
-- read
select 1 as ok from witness where id = :id;

-- name: witness.purge
-- unfenced: no process checks a batch that is this old
-- writes: witness
delete from witness where at < :at - :older_ms;

-- name: name.create
-- unfenced: a named lease is created by the first request for it
-- writes: names
insert into names(tenant, name, journal) values (:tenant, :name, :journal) on conflict do nothing;

-- name: name.find
-- read
select journal from names where tenant = :tenant and name = :name;

-- name: name.list
-- read
-- Named leases of one tenant, by name. Held runs and items are not read, however many there are.
select l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.next_reactor, l.due_at, l.last_end_reason, l.workflow, l.checkpoint, $slot_state, $queue_name,
  cast(l.token as text) as token, cast(l.nonce as text) as nonce, :now as now, n.name
from names n cross join leases l on l.journal = n.journal
where n.tenant = :tenant and n.name > :above and substr(n.name, 1, length(:prefix)) = :prefix
  and (:names is null or n.name in (select i.value from json_each(:names) i)) and (not :held or l.owner is not null)
order by n.name limit :limit;

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

-- name: sink.kept_runs
-- read
-- Runs that ended since the last record that a sink has passed, and so long ago that an operator may want to prune them.
select count(*) as n from (select 1 from runs r
  where r.tenant = :tenant and r.ended_at >= :after and r.ended_at < :before limit :cap) x;

-- name: sink.list
-- read
select n.journal, n.name, (select count(*) from (
  select 1 from dead_letters d where d.tenant = :tenant and d.sink = substr(n.name, 6) and d.state = 'OPEN' limit 10000) x) as letters
from names n
where n.tenant = :tenant and n.name > 'sink ' || :above and n.name < 'sink!' order by n.name limit :limit;

-- name: subjects
-- read
-- What the records of these journals are about, in one query.
select l.journal, l.kind, n.name, r.id as run, r.workflow, r.version, r.labels, t.id as root, p.id as parent, e.pos, e.sub, e.name as effect
from json_each(:journals) i cross join leases l on l.journal = i.value and l.tenant = :tenant
left join runs r on r.journal = l.run and l.kind in ('run', 'item')
left join runs t on t.journal = r.root
left join runs p on p.journal = r.parent
left join names n on n.journal = l.journal and l.kind = 'name'
left join effects e on e.item = l.journal and l.kind = 'item';
