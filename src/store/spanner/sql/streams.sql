-- name: blob.count
-- unfenced: counts what the same transaction stores, if bytes are measured at all
-- writes: quotas
insert or update into quotas(tenant, runs, bytes, schedules, streams, metered, bytes_used, runs_used, runs_at, metered_at)
select x.tenant, v.runs, v.bytes, v.schedules, v.streams, v.metered, coalesce(v.bytes_used, 0) + :bytes, coalesce(v.runs_used, 0),
  coalesce(v.runs_at, 0), coalesce(v.metered_at, 0) from (select :tenant as tenant) x left join quotas v on v.tenant = x.tenant
where exists (select 1 from quotas d where d.tenant = '' and d.metered is not null);

-- name: blob.get
-- read
-- The tenant is given if the target named a journal: then another tenant's journal has no blobs.
select b.chunks, b.body from blobs b
where b.journal = :journal and b.blob = :blob and b.n = :n
  and (:tenant is null or (select l.tenant from leases l where l.journal = :journal) = :tenant);

-- name: blob.put
-- fenced
-- writes: blobs
-- After `stream.fence` in the same transaction.
insert into blobs(journal, blob, n, chunks, bytes, counted, body, begins)
values (:journal, :blob, :n, :chunks, :bytes, :counted, :body, :begins);

-- name: blob.stored
-- read
-- How much of the blob is there.
select count(*) as stored, max(b.chunks) as chunks, coalesce(sum(b.bytes), 0) as bytes from blobs b
where b.journal = :journal and b.blob = :blob;

-- name: blob.weigh
-- read
-- What the current generation has stored.
select coalesce(sum(b.bytes), 0) as bytes from blobs@{force_index=blobs_generation} b where b.journal = :journal and b.begins = :begins;

-- name: chunk.append
-- fenced
-- writes: chunks
-- After `stream.fence` in the same transaction. A body of null says that the part started again.
insert into chunks(run, stream, chunk_offset, part, token, `at`, body, total)
values (:run, :stream, :chunk_offset, :part, :token, :at, :body, :total);

-- name: chunk.find
-- read
select cast(c.token as string) as token from chunks c where c.run = :run and c.stream = :stream and c.chunk_offset = :chunk_offset;

-- name: chunk.forget
-- unfenced: only streams of finished runs expire
-- writes: chunks
-- In ranges: a transaction may change a bounded number of rows.
delete from chunks where run = :run and stream = :stream
  and chunk_offset < :span + (select min(c.chunk_offset) from chunks c where c.run = :run and c.stream = :stream);

-- name: chunk.last
-- read
select c.chunk_offset, c.total from chunks c where c.run = :run and c.stream = :stream order by c.chunk_offset desc limit 1;

-- name: chunk.page
-- read
-- Chunks of several streams, each from its offset on. Offsets have gaps where an attempt was repeated, so each page starts
-- with the first chunk that exists. The end of the run is read by the same statement: no chunk follows it.
select k, r.journal, r.ended_at is not null as ended, c.chunk_offset, c.part, c.at, c.body,
  (select max(m.chunk_offset) from chunks m where m.run = s.run and m.stream = s.name) as last_offset
from unnest(json_query_array(:wanted)) w with offset k
join runs@{force_index=runs_id} r on r.tenant = :tenant and r.id = json_value(w, '$[0]')
left join streams s on s.run = r.journal and s.name = json_value(w, '$[1]')
  and (r.ended_at is null or s.retain_ms is null or r.ended_at + s.retain_ms > :at)
left join chunks c on c.run = s.run and c.stream = s.name and c.chunk_offset >= cast(json_value(w, '$[2]') as int64)
  and c.chunk_offset < :limit + (select min(n.chunk_offset) from chunks n
    where n.run = s.run and n.stream = s.name and n.chunk_offset >= cast(json_value(w, '$[2]') as int64))
order by k, c.chunk_offset;

-- name: chunk.parts
-- read
-- Of the current generation: no body of an earlier one is attempted again.
select c.part, coalesce(sum(byte_length(c.body)), 0) as bytes from runs@{force_index=runs_id} r
join leases l on l.journal = r.journal
join chunks c on c.run = r.journal and c.stream = :stream and c.part >= l.begins_pos
where r.tenant = :tenant and r.id = :id
group by c.part order by c.part limit :limit;

-- name: chunk.rewind
-- fenced
-- writes: chunks
-- After `stream.fence` in the same transaction: what earlier attempts of the part have streamed.
delete from chunks where run = :run and stream = :stream and part = :part;

-- name: chunk.weigh
-- read
select coalesce(sum(byte_length(c.body)), 0) as bytes from chunks c where c.run = :run and c.stream = :stream and c.part = :part;

-- name: erase.blobs
-- unfenced: only finished runs are erased
-- writes: blobs
-- In parts: a transaction may change a bounded number of rows.
delete from blobs where journal = :run and exists (
  select 1 from (select b.blob, b.n from blobs b where b.journal = :run order by b.blob, b.n limit :limit) x
  where x.blob = blobs.blob and x.n = blobs.n)
then return if(counted, bytes, 0) as bytes;

-- name: erase.chunks
-- unfenced: only finished runs are erased
-- writes: chunks
delete from chunks where run = :run and exists (
  select 1 from (select c.stream, c.chunk_offset from chunks c where c.run = :run order by c.stream, c.chunk_offset limit :limit) x
  where x.stream = chunks.stream and x.chunk_offset = chunks.chunk_offset);

-- name: erase.streams
-- unfenced: only finished runs are erased
-- writes: streams
delete from streams where run = :run;

-- name: stream.expired
-- read
-- The next streams with a retention of their own, in the order of the index; `expired`: the run has ended, and the time is
-- over.
select s.run, s.name, coalesce(r.ended_at + s.retain_ms <= :at, false) as expired
from streams@{force_index=streams_retained, $sparse} s join runs r on r.journal = s.run
where s.retain_ms is not null and s.run > bit_reverse(:above, true) order by s.run, s.name limit :limit;

-- name: stream.fence
-- read
-- The fence of a write beside the journal of a run: it needs no head.
select l.kind, l.begins from leases l
where l.journal = :journal and l.tenant = :tenant and l.token = :token and l.nonce = :nonce and not l.doomed;

-- name: stream.forget
-- unfenced: only streams of finished runs expire
-- writes: streams
delete from streams where run = :run and name = :name and not exists (select 1 from chunks c where c.run = :run and c.stream = :name);

-- name: stream.list
-- read
select s.name, s.retain_ms, c.chunk_offset, c.total, c.at
from runs@{force_index=runs_id} r join streams s on s.run = r.journal and (r.ended_at is null or s.retain_ms is null or r.ended_at + s.retain_ms > :at)
  join chunks c on c.run = s.run and c.stream = s.name
  and c.chunk_offset = (select max(n.chunk_offset) from chunks n where n.run = s.run and n.stream = s.name)
where r.tenant = :tenant and r.id = :id
order by s.name;

-- name: stream.open
-- fenced
-- writes: streams
-- After `stream.fence` in the same transaction.
insert into streams(run, name, retain_ms)
select :run, :name, :retain_ms from unnest([1]) where (select count(*) from streams s where s.run = :run) < :max;

-- name: stream.subject
-- read
-- The run of a token whose signature is right.
select r.tenant, r.id, :at as now from runs r where r.journal = :journal;
