-- macro: $stamp
-- The position of the record `r` in the feed: microseconds.
unix_micros(r.committed);

-- macro: $store_journal
-- The number of the store's own journal, which is 1, as it is stored.
4611686018427387904;

-- name: feed.frontier
-- read
-- A strong read sees every commit with an earlier timestamp, and none can follow it with one.
select coalesce(max(f), 0) as id from $shards s
cross join unnest(array(select $stamp from records@{force_index=records_feed} r where r.shard = s order by r.committed desc limit 1)) f;

-- name: feed.key
-- read
select cursor_key as key from meta where one;

-- name: feed.page
-- read
-- Commit timestamps follow real time: what commits after this read has a later one, so nothing can appear before the end
-- of a page. The first row has the number of scanned records (at) and the position of the last one. A query for one tenant
-- scans at most :scan records, up to the stamp :edge.
with w as (
  select x.stamp, x.journal, x.seq from $shards s
  cross join unnest(array(
    select as struct $stamp as stamp, r.journal, r.seq from records@{force_index=records_feed} r
    where r.shard = s and r.committed >= timestamp_micros(least(:stamp, 253402300799999999)) and r.committed <= timestamp_micros(least(:edge, 253402300799999999))
      and (r.committed > timestamp_micros(least(:stamp, 253402300799999999)) or r.journal > :journal or (r.journal = :journal and r.seq > :seq))
    order by r.committed, r.journal, r.seq limit :scan)) x
  order by x.stamp, x.journal, x.seq limit :scan),
f as (
  select w.stamp, w.journal, w.seq from w
  where :tenant is null or (select l.tenant from leases l where l.journal = abs(w.journal)) = :tenant
  order by w.stamp, w.journal, w.seq limit :limit)
select 0 as part, coalesce(e.stamp, 0) as stamp, coalesce(e.journal, 0) as journal, coalesce(e.seq, 0) as seq,
  cast(null as string) as token, (select count(*) from w) as `at`, cast(null as string) as kind, cast(null as bytes) as body
from unnest([1]) one left join (select w.stamp, w.journal, w.seq from w order by w.stamp desc, w.journal desc, w.seq desc limit 1) e on true
union all
select 1, f.stamp, f.journal, f.seq, cast(r.token as string), r.at, r.kind, r.body
from f join records r on r.journal = f.journal and r.seq = f.seq
order by 1, 2, 3, 4;

-- name: feed.tenants
-- read
-- The tenants with records after a position of the feed, by their stamps: one query for all that follow it. The row
-- without a tenant has two stamps: the last one, and the last one scanned. The latter is not that of the last record if
-- the scan was as long as allowed: more records may have that stamp.
with n as (
  select coalesce(max(f), 0) as stamp from $shards s
  cross join unnest(array(select $stamp from records@{force_index=records_feed} r where r.shard = s order by r.committed desc limit 1)) f),
w as (
  select x.stamp, x.journal from $shards s
  cross join unnest(array(select as struct $stamp as stamp, r.journal from records@{force_index=records_feed} r
    where r.shard = s and r.committed > timestamp_micros(least(:after, 253402300799999999)) order by r.committed limit :scan)) x
  order by x.stamp limit :scan),
e as (
  select case when (select count(*) from w) < :scan then n.stamp else (select max(w.stamp) from w) - 1 end as stamp from n)
select cast(null as string) as tenant, n.stamp as first, e.stamp as last, cast(null as int64) as holder from e cross join n
union all
select l.tenant, min(w.stamp), max(w.stamp), null from w join leases l on l.journal = abs(w.journal)
where w.stamp <= (select e.stamp from e) group by l.tenant
order by 1;

-- name: journal.head
-- read
select coalesce(max(seq), 0) as head from records where journal = :journal;

-- name: journal.page
-- read
-- The tenant is given if the target named a journal: then another tenant's journal has no records.
select r.journal, r.seq, cast(r.token as string) as token, r.at, r.kind, r.body from records r
where r.journal = :journal and r.seq >= :from
  and (:tenant is null or (select l.tenant from leases l where l.journal = abs(:journal)) = :tenant)
order by r.seq limit :limit;

-- name: journal.terms
-- read
-- Of a run that has continued as new: from about the generation before the current one on.
select r.journal, r.seq, cast(r.token as string) as token, r.at, r.kind, r.body from records r
where r.journal = :journal and r.seq >= (select greatest(1, l.begins - 100000) from leases l where l.journal = :journal)
  and r.kind in ('run.created', 'term.started', 'term.ended', 'run.ended') order by r.seq;

-- name: journals.block
-- unfenced: journal numbers are issued in blocks; unused ones are lost, which does no harm
-- writes: meta
update meta set next_journal = next_journal + :size where one then return next_journal - :size as first;

-- name: note.count
-- unfenced: an inbox has many writers and no lease; the counter is what parking and ending compare
-- writes: leases
-- A run without a holder is wanted at once, unless it waits in a queue. An item that already waits for a reactor keeps
-- waiting for that one.
update leases set notes = notes + 1,
  next_reactor = case when owner is not null or doomed or $in_queue then next_reactor when kind = 'run' then $recovery_of else coalesce(next_reactor, 'reconciler') end,
  due_at = case when owner is null and not doomed and not $in_queue and (kind = 'run' or next_reactor is null) then :now else due_at end
where journal = :journal and tenant = :tenant and open
then return notes, begins_notes, kind, tenant, workflow, queue, owner, case when owner is null then next_reactor end as wakes, :now as now;

-- name: note.create
-- unfenced: see note.count
-- writes: records
-- Records are inserted as mutations, with the commit: no statement of the transaction may read a pending timestamp.
insert into records(journal, seq, token, `at`, kind, body, committed)
values (-:journal, :seq, 0, :at, :kind, :body, pending_commit_timestamp());

-- name: note.find
-- read
select n from note_keys where journal = :journal and key = :key;

-- name: note.key
-- unfenced: remembers a signal's key, so that a repeat is not a second signal
-- writes: note_keys
-- Written with n = 0 before the note is sent, so that senders of one key queue here; then with the note's number.
insert or update into note_keys(journal, key, n)
select x.journal, x.key, :n from (select :journal as journal, :key as key) x left join note_keys v on v.journal = x.journal and v.key = x.key
where v.n is null or v.n = 0;

-- name: record.append
-- fenced
-- writes: records
-- As note.create.
insert into records(journal, seq, token, `at`, kind, body, committed)
values (:journal, :seq, :token, :at, :kind, :body, pending_commit_timestamp());

-- name: record.create
-- fenced
-- writes: records
-- The first record of a journal that the fenced write opens.
insert into records(journal, seq, token, `at`, kind, body, committed)
values (:journal, :seq, :token, :at, :kind, :body, pending_commit_timestamp());

-- name: witness.create
-- unfenced: proves, after a lost response, whether the transaction of this name was committed
-- writes: witness
-- As a mutation, like a record: it costs no round trip.
insert into witness(id, void, committed) values (:id, false, pending_commit_timestamp());

-- name: witness.find
-- read
select not w.void as ok from witness w where w.id = :id;

-- name: witness.purge
-- unfenced: no process checks a transaction that is this old
-- writes: witness
delete from witness where committed < timestamp_millis(:at - :older_ms);

-- name: witness.settle
-- unfenced: the asking process claims the name, so that the transaction of this name can no longer commit
-- writes: witness
-- After witness.find in the same transaction. If the other one is still open, one of the two is aborted.
insert into witness(id, void, committed) values (:id, true, pending_commit_timestamp());

-- name: name.create
-- unfenced: a named lease is created by the first request for it
-- writes: names
insert or ignore into names(tenant, name, journal) values (:tenant, :name, :journal);

-- name: name.find
-- read
select journal from names where tenant = :tenant and name = :name;

-- name: name.list
-- read
-- Named leases of one tenant, by name. Held runs and items are not read, however many there are.
select $lease_columns, $slot_state, $queue_name, n.name
from names n join leases l on l.journal = n.journal
where n.tenant = :tenant and n.name > :above and starts_with(n.name, :prefix)
  and (:names is null or n.name in unnest(json_value_array(:names))) and (not :held or l.owner is not null)
order by n.name limit :limit;

-- name: lease.checkpoint
-- fenced
-- writes: leases
-- One statement compares the whole fence, as lease.renew does.
update leases set checkpoint = :text
where journal = :journal and tenant = :tenant and token = :token and nonce = :nonce and not doomed and kind = 'name';

-- name: fence.name
-- read
-- The fence of a write about a named lease, and its name.
select n.name from leases l join names@{force_index=names_journal} n on n.journal = l.journal
where l.journal = :journal and l.tenant = :tenant and l.token = :token and l.nonce = :nonce and not l.doomed;

-- name: dead_letter.put
-- fenced
-- writes: dead_letters
-- The same event again changes an open letter only: what an operator has settled stays settled.
insert or update into dead_letters(tenant, sink, event, journal, seq, inbox, kind, `at`, attempts, code, error, state, changed_at)
select x.tenant, x.sink, x.event, coalesce(v.journal, :journal), coalesce(v.seq, :seq), coalesce(v.inbox, :inbox), coalesce(v.kind, :kind),
  coalesce(v.at, :at), :attempts, :code, :error, 'OPEN', :at
from (select :tenant as tenant, :sink as sink, :event as event) x
left join dead_letters v on v.tenant = x.tenant and v.sink = x.sink and v.event = x.event
where v.state is null or v.state in ('OPEN', 'REPLAY');

-- name: dead_letter.sent
-- fenced
-- writes: dead_letters
update dead_letters set state = 'SENT', changed_at = :at
where tenant = :tenant and sink = :sink and event = :event and state = 'REPLAY';

-- name: dead_letter.settle
-- unfenced: an operator's order; the sink's holder carries it out under its own fence
-- writes: dead_letters
insert or update into dead_letters(tenant, sink, event, journal, seq, inbox, kind, `at`, attempts, code, error, state, changed_at)
select d.tenant, d.sink, d.event, d.journal, d.seq, d.inbox, d.kind, d.at, d.attempts, d.code, d.error, :to, :at
from dead_letters d
where d.tenant = :tenant and d.sink = :sink and (d.state = 'OPEN' or (:to = 'DISCARDED' and d.state = 'REPLAY')) and (
  d.event in unnest(json_value_array(:events))
  or (:events is null and d.event in (select x.event from (select o.event from dead_letters@{force_index=dead_letters_state} o
    where o.tenant = :tenant and o.sink = :sink and o.state = 'OPEN' order by o.at, o.event limit :limit) x)));

-- name: dead_letter.list
-- read
select d.sink, d.event, d.journal, d.seq, d.inbox, d.kind, d.at, d.attempts, d.code, d.error, d.state
from dead_letters@{force_index=dead_letters_state} d
where d.tenant = :tenant and d.sink = :sink and d.state = :state and (d.at > :after_at or (d.at = :after_at and d.event > :after_event))
order by d.at, d.event limit :limit;

-- name: dead_letter.purge
-- unfenced: settled letters are history, which is kept as long as finished runs are
-- writes: dead_letters
delete from dead_letters where tenant = :tenant and state in ('SENT', 'DISCARDED') and changed_at < :before;

-- name: sink.checkpoints
-- read
-- Of the leases whose names begin with "sink ": pruning keeps what a sink has not passed.
select l.checkpoint from names n join leases l on l.journal = n.journal
where n.tenant = :tenant and n.name > 'sink ' and n.name < 'sink!' and l.checkpoint is not null;

-- name: sink.kept_runs
-- read
-- Runs that ended since the last record that a sink has passed, and so long ago that an operator may want to prune them.
select count(*) as n from (select r.journal from runs@{force_index=runs_ended, $sparse} r
  where r.tenant = :tenant and r.ended_at >= :after and r.ended_at < :before limit :cap) x;

-- name: sink.list
-- read
select n.journal, n.name, (select count(*) from (select d.event from dead_letters@{force_index=dead_letters_state} d
  where d.tenant = :tenant and d.sink = substr(n.name, 6) and d.state = 'OPEN' limit 10000) x) as letters
from names n
where n.tenant = :tenant and n.name > 'sink ' || :above and n.name < 'sink!' order by n.name limit :limit;

-- name: subjects
-- read
-- What the records of these journals are about, in one query.
select l.journal, l.kind, n.name, r.id as run, r.workflow, r.version, r.labels, t.id as root, p.id as parent, e.pos, e.sub, e.name as effect
from unnest(:journals) i join leases l on l.journal = i and l.tenant = :tenant
left join runs r on r.journal = l.run and l.kind in ('run', 'item')
left join runs t on t.journal = r.root
left join runs p on p.journal = r.parent
left join names@{force_index=names_journal} n on n.journal = l.journal and l.kind = 'name'
left join effects@{force_index=effects_item, $sparse} e on e.item = l.journal and l.kind = 'item';
