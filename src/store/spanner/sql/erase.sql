-- name: erase.flag
-- unfenced: only finished runs are erased
-- writes: runs
-- From here on the archive gets none of their payloads, whatever becomes of the rest of the erasure.
update runs set outcome = :erased where journal in unnest(:runs) and ended_at is not null;

-- name: erase.gates
-- unfenced: only finished runs are erased
-- writes: gates
update gates set payload = if(payload is null, null, :erased), value = if(value is null, null, :erased)
where run = :run and pos in (select cast(i as int64) from unnest(json_value_array(:positions)) i);

-- name: erase.journals
-- read
-- The journals of a run, without inboxes, by their numbers.
select l.journal from (select :run as journal
  union all select i.journal from leases@{force_index=leases_items, $sparse} i where i.item_of = :run) x
join leases l on l.journal = x.journal
where l.born >= :from order by l.born limit :limit;

-- name: erase.labels
-- unfenced: only finished runs are erased
-- writes: run_labels
-- The value is a part of the key, which cannot change: `erase.old_labels` deletes the rows that these replace.
insert or ignore into run_labels(tenant, key, value, journal)
select v.tenant, v.key, :word, v.journal from run_labels v where v.journal = :run;

-- name: erase.lease
-- unfenced: only finished runs are erased; the note of the last progress is no part of the fence
-- writes: leases
update leases set progress_note = :word where journal = :run and progress_note is not null;

-- name: erase.old_labels
-- unfenced: only finished runs are erased
-- writes: run_labels
delete from run_labels where journal = :run and value <> :word;

-- name: erase.page
-- read
-- `counted`: the record's bytes count as used.
select r.seq, r.kind, r.body, $stamp <= coalesce((select d.metered from quotas d where d.tenant = ''), 0) as counted from records r
where r.journal = :journal and r.seq > :above order by r.seq limit :limit;

-- name: erase.postpone
-- unfenced: retention waits while a tree is erased
-- writes: retention
update retention set due_at = greatest(due_at, :at + :delay_ms) where journal = :root;

-- name: erase.published
-- unfenced: only finished runs are erased
-- writes: published
update published set value = :erased where run = :run;

-- name: erase.records
-- unfenced: only finished runs are erased, whose journals no holder appends to
-- writes: records
-- Each record keeps its timestamp, which is its place in the feed.
insert or update into records(journal, seq, token, `at`, kind, body, committed)
select r.journal, r.seq, r.token, r.at, r.kind, cast(json_value(i, '$[1]') as bytes), r.committed
from unnest(json_query_array(:rows)) i
join records r on r.journal = :journal and r.seq = cast(json_value(i, '$[0]') as int64);

-- name: erase.replies
-- unfenced: only finished runs are erased
-- writes: replies
insert or update into replies(journal, n, body, `at`)
select r.journal, r.n, cast(json_value(i, '$[1]') as bytes), r.at
from unnest(json_query_array(:rows)) i
join replies r on r.journal = :run and r.n = cast(json_value(i, '$[0]') as int64);

-- name: erase.run
-- unfenced: only finished runs are erased
-- writes: runs
update runs set labels = :labels where journal = :run;

-- name: erase.target
-- read
select r.root from runs@{force_index=runs_id} r where r.tenant = :tenant and r.id = :id;

-- name: erase.tree
-- read
-- The runs of a tree after one of them, in the order in which they were created.
select r.journal, r.id, r.labels from (select :root as journal
  union all select c.journal from runs@{force_index=runs_tree, $sparse} c where c.under = :root) x
join runs r on r.journal = x.journal and r.tenant = :tenant
where r.born >= :from order by r.born limit :limit;

-- name: erase.usage
-- unfenced: erased bytes no longer count as used, as far as they were measured
-- writes: quotas
update quotas set bytes_used = greatest(0, bytes_used - :bytes)
where tenant = :tenant and exists (select 1 from quotas d where d.tenant = '' and d.metered is not null);
