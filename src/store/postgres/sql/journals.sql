-- macro: tape.stamp()
-- Position of a record in the feed: the number of its transaction, raised after restores. The loader puts this text
-- where a statement says `tape.stamp()`: it is evaluated once per statement, a function would be called for each row.
(select pg_current_xact_id()::text::bigint + m.feed_offset from tape.meta m);

-- macro: tape.feed_horizon()
-- Below it every transaction has finished, so nothing can appear there later.
(select pg_snapshot_xmin(pg_current_snapshot())::text::bigint + m.feed_offset from tape.meta m);

-- macro: tape.feed_holder()
-- The oldest open transaction, if a younger one has finished: the feed waits for it. Null on an idle server.
(select case when pg_snapshot_xmin(s.now) < pg_snapshot_xmax(s.now) then pg_snapshot_xmin(s.now)::text::bigint end
  from (select pg_current_snapshot() as now) s);

-- macro: %page%
-- Wraps the statement of a list: its rows up to the one that fills the page.
select b.* from (
  select a.*, %size% as row_bytes, sum(%size%) over (rows unbounded preceding) as page_bytes from (
%list%
  ) a) b
where b.page_bytes - b.row_bytes < coalesce(:page_bytes, 9223372036854775807);

-- name: feed.blocker
-- read
-- What holds the feed back: the oldest transaction with an xid, if this role may see it.
select a.pid, a.usename as usename, a.application_name, a.state, extract(epoch from clock_timestamp() - a.xact_start)::bigint as seconds
from pg_stat_activity a
where a.backend_xid is not null and a.backend_xid::text = (pg_snapshot_xmin(pg_current_snapshot())::text::bigint % 4294967296)::text
limit 1;

-- name: feed.frontier
-- read
-- The last finished stamp of a record, not the horizon: other databases raise that, too. A cursor there would be ahead of
-- the records that a restored store writes, whose offset is raised only to the last stamp.
select coalesce((select r.stamp from tape.records r where r.stamp < tape.feed_horizon()
  order by r.stamp desc limit 1), 0) as id;

-- name: feed.key
-- read
select cursor_key as key from tape.meta;

-- name: feed.page
-- read
-- Below the snapshot's xmin every transaction has finished, so nothing can appear there later: an older transaction
-- that commits last holds the feed back instead of being skipped. Order within a journal follows from the stamps. The
-- first row has the number of scanned records (at) and the position of the last one; its token is the transaction for
-- which the feed waits. A query for one tenant scans at most :scan records, up to the stamp :edge.
with w as materialized (
  select r.stamp, r.journal, r.seq from tape.records r
  where (r.stamp, r.journal, r.seq) > (:stamp, :journal, :seq)
    and r.stamp >= :stamp and r.stamp <= :edge
    and r.stamp < tape.feed_horizon()
  order by r.stamp, r.journal, r.seq limit :scan),
f as materialized (
  select w.stamp, w.journal, w.seq from w
  where :tenant::text is null or (select l.tenant from tape.leases l where l.journal = abs(w.journal)) = :tenant
  order by w.stamp, w.journal, w.seq limit :limit)
(select coalesce(e.stamp, 0) as stamp, coalesce(e.journal, 0) as journal, coalesce(e.seq, 0) as seq,
    cast(tape.feed_holder() as text) as token, (select count(*) from w) as at, null as kind, null as body
  from (values (1)) one(n) left join lateral (
    select w.stamp, w.journal, w.seq from w order by w.stamp desc, w.journal desc, w.seq desc limit 1) e on true)
union all
(select f.stamp, f.journal, f.seq, r.token, r.at, r.kind, r.body
  from f cross join lateral (select cast(r.token as text) as token, r.at, r.kind, r.body
    from tape.records r where r.journal = f.journal and r.seq = f.seq limit 1) r
  order by f.stamp, f.journal, f.seq);

-- name: feed.tenants
-- read
-- The tenants with records after a position of the feed, by their stamps: one query for all that follow it. The row
-- without a tenant has two stamps: the last finished one (below the snapshot's xmin, as in feed.page) and the last one
-- scanned. The latter is not that of the last record if the scan was as long as allowed: more records may have that
-- stamp. Its holder is the transaction for which the feed waits. A tenant that arrives brings records with earlier
-- stamps, and raises the offset: what was scanned before does not count any more.
with h as materialized (
  select tape.feed_horizon() as stamp),
n as materialized (
  select coalesce((select r.stamp from tape.records r where r.stamp < (select h.stamp from h)
    order by r.stamp desc limit 1), 0) as stamp),
w as materialized (
  select r.stamp, r.journal from tape.records r
  where r.stamp > :after and r.stamp < (select h.stamp from h) order by r.stamp limit :scan),
e as materialized (
  select case when (select count(*) from w) < :scan then n.stamp else (select max(w.stamp) from w) - 1 end as stamp from n)
select null as tenant, n.stamp as first, e.stamp as last, tape.feed_holder() as holder,
  (select m.feed_offset from tape.meta m) as feed_offset from e cross join n
union all
select l.tenant, min(w.stamp), max(w.stamp), null, null from w
  cross join lateral (select l.tenant from tape.leases l where l.journal = abs(w.journal) limit 1) l
where w.stamp <= (select e.stamp from e) group by l.tenant;

-- name: journal.head
-- read
select coalesce(max(seq), 0) as head from tape.records where journal = :journal;

-- name: journal.page
-- read
-- The tenant is given if the target named a journal: then another tenant's journal has no records.
select journal, seq, cast(token as text) as token, at, kind, body from tape.records
where journal = :journal and seq >= :from
  and (:tenant::text is null or (select l.tenant from tape.leases l where l.journal = abs(:journal::bigint)) = :tenant)
order by seq limit :limit;

-- name: journals.short
-- read
-- journal.page from the first record, for many journals. One with a long record is left out; of one with many records
-- nine are returned. Both are read alone.
select r.journal, r.seq, cast(r.token as text) as token, r.at, r.kind, r.body
from unnest(:journals::bigint[], :tenants::text[]) as i(journal, tenant)
cross join lateral (select l.journal from tape.leases l where l.journal = i.journal and l.tenant = i.tenant limit 1) l
left join lateral (select true as long from tape.records o
  where o.journal = l.journal and o.seq between 1 and 9 and octet_length(o.body) > 16384 limit 1) o on true
cross join lateral (select x.journal, x.seq, x.token, x.at, x.kind, x.body from tape.records x
  where x.journal = l.journal and x.seq >= 1 and o.long is null order by x.seq limit 9) r
order by r.journal, r.seq;

-- name: journal.terms
-- read
-- Of a run that has continued as new: from about the generation before the current one on.
select journal, seq, cast(token as text) as token, at, kind, body from tape.records
where journal = :journal and seq >= (select greatest(1, l.begins - 100000) from tape.leases l where l.journal = :journal) and kind in ('run.created', 'term.started', 'term.ended', 'run.ended') order by seq;

-- name: journals.block
-- unfenced: journal numbers are issued in blocks; unused ones are lost, which does no harm
-- writes: meta
-- None while the server's timeline is not the recorded one: a promoted standby may not know the last issued block.
update tape.meta set next_journal = next_journal + :size
where tape.on_timeline()
returning next_journal - :size as first;

-- name: note.count
-- unfenced: an inbox has many writers and no lease; the counter is what parking and ending compare
-- writes: leases
-- A run without a holder is wanted at once, unless it waits in a queue. An item that already waits for a reactor keeps
-- waiting for that one.
update tape.leases set notes = notes + 1,
  next_reactor = case when owner is not null or doomed or $in_queue then next_reactor when kind = 'run' then $recovery_of else coalesce(next_reactor, 'reconciler') end,
  due_at = case when owner is null and not doomed and not $in_queue and (kind = 'run' or next_reactor is null) then tape.now_ms() else due_at end
where journal = :journal and tenant is not distinct from :tenant and open
returning notes, begins_notes, kind, tenant, workflow, queue, owner, case when owner is null then next_reactor end as wakes;

-- name: note.create
-- unfenced: see note.count, whose row lock queues the writers of one inbox
-- writes: records
insert into tape.records(journal, seq, token, stamp, at, kind, body)
values (-:journal::bigint, :seq, 0, greatest(tape.stamp(), coalesce((select p.stamp from tape.records p where p.journal = -:journal::bigint and p.seq = :seq::bigint - 1), 0)),
  tape.now_ms(), :kind, :body);

-- name: note.find
-- read
select n from tape.note_keys where journal = :journal and key = :key;

-- name: note.key
-- unfenced: remembers a signal's key, so that a repeat is not a second signal
-- writes: note_keys
-- Written with n = 0 before the note is sent, so that senders of one key queue here; then with the note's number.
insert into tape.note_keys(journal, key, n) values (:journal, :key, :n)
on conflict(journal, key) do update set n = excluded.n where note_keys.n = 0;

-- name: record.append
-- fenced
-- writes: records
-- Inserts nothing unless the predecessor exists; a second writer of seq hits the unique index. The stamp never
-- decreases along a journal, although a transaction may have got its xid before its predecessor's.
insert into tape.records(journal, seq, token, stamp, at, kind, body)
select :journal, :seq, :token, greatest(tape.stamp(), p.stamp), tape.now_ms(), :kind, :body
from tape.records p where p.journal = :journal and p.seq = :seq::bigint - 1;

-- name: record.create
-- fenced
-- writes: records
-- The first record of a journal that the fenced write opens.
insert into tape.records(journal, seq, token, stamp, at, kind, body)
values (:journal, :seq, :token, tape.stamp(), tape.now_ms(), :kind, :body);

-- name: witness.create
-- unfenced: proves, after a lost response, whether the batch of this name was committed
-- writes: witness
insert into tape.witness(id, at) values (:id, tape.now_ms());

-- name: witness.find
-- read
select 1 as ok from tape.witness where id = :id;

-- name: witness.purge
-- unfenced: no process checks a batch that is this old
-- writes: witness
delete from tape.witness where at < tape.now_ms() - :older_ms;

-- name: witness.settle
-- unfenced: settles, after a lost response, whether the transaction of this witness happened
-- writes: witness
-- The transaction's own row is not void; ours is, and once ours exists that transaction can no longer commit. The mark
-- is kept, because our own response may be lost as well: a repeat must not mistake our row for the transaction's.
insert into tape.witness(id, at, void) values (:id, tape.now_ms(), true)
on conflict(id) do update set at = witness.at returning void;

-- name: name.create
-- unfenced: a named lease is created by the first request for it
-- writes: names
insert into tape.names(tenant, name, journal) values (:tenant, :name, :journal) on conflict do nothing;

-- name: name.find
-- read
select journal from tape.names where tenant = :tenant and name = :name;

-- name: name.list
-- read
-- Named leases of one tenant, by name. Held runs and items are not read, however many there are.
select l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.next_reactor, l.due_at, l.last_end_reason, l.workflow, l.checkpoint, $slot_state, $queue_name,
  cast(l.token as text) as token, cast(l.nonce as text) as nonce, tape.now_ms() as now, n.name
from tape.names n cross join lateral (select l.journal, l.kind, l.tenant, l.run, l.token, l.nonce, l.owner, l.label, l.reactor, l.ttl_ms,
  l.expires_at, l.acquired_at, l.reason, l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note,
  l.max_stall_ms, l.doomed, l.paused, l.stalled, l.notes, l.open, l.next_reactor, l.due_at, l.last_end_reason, l.workflow,
  l.checkpoint, l.queue from tape.leases l where l.journal = n.journal limit 1) l
where n.tenant = :tenant and n.name > :above and starts_with(n.name, :prefix)
  and (:names::text is null or n.name = any(array(select json_array_elements_text(:names::json))))
  and (not :held or l.owner is not null)
order by n.name limit :limit;

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

-- name: sink.kept_runs
-- read
-- Runs that ended since the last record that a sink has passed, and so long ago that an operator may want to prune them.
select count(*) as n from (select 1 from tape.runs r
  where r.tenant = :tenant and r.ended_at >= :after and r.ended_at < :before limit :cap) x;

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
from (select json_array_elements_text(:journals::json)::bigint as journal) i
cross join lateral (select l.kind, l.run from tape.leases l where l.journal = i.journal and l.tenant = :tenant limit 1) l
left join lateral (select r.id, r.workflow, r.version, r.labels, r.root, r.parent
  from tape.runs r where r.journal = l.run and l.kind in ('run', 'item') limit 1) r on true
left join lateral (select x.id from tape.runs x where x.journal = r.root limit 1) t on true
left join lateral (select x.id from tape.runs x where x.journal = r.parent limit 1) p on true
left join lateral (select n.name from tape.names n where n.journal = i.journal and l.kind = 'name' limit 1) n on true
left join lateral (select e.pos, e.sub, e.name from tape.effects e where e.item = i.journal and l.kind = 'item' limit 1) e on true;
