-- name: blob.count
-- unfenced: counts what the same transaction stores, if bytes are measured at all
-- writes: quotas
insert into tape.quotas(tenant, bytes_used)
select :tenant, :bytes where exists (select 1 from tape.quotas d where d.tenant = '' and d.metered is not null)
on conflict(tenant) do update set bytes_used = quotas.bytes_used + excluded.bytes_used;

-- name: blob.get
-- read
-- The tenant is given if the target named a journal: then another tenant's journal has no blobs.
select b.chunks, b.body from tape.blobs b
where b.journal = :journal and b.blob = :blob and b.n = :n
  and (:tenant::text is null or (select l.tenant from tape.leases l where l.journal = :journal::bigint) = :tenant);

-- name: blob.put
-- fenced
-- writes: blobs
-- After `stream.fence` in the same transaction.
insert into tape.blobs(journal, blob, n, chunks, bytes, counted, body, begins)
values (:journal, :blob, :n, :chunks, :bytes, :counted, :body, :begins);

-- name: blob.stored
-- read
-- How much of the blob is there.
select count(*) as stored, max(b.chunks) as chunks, coalesce(sum(b.bytes), 0)::bigint as bytes from tape.blobs b
where b.journal = :journal and b.blob = :blob;

-- name: blob.weigh
-- read
-- What the current generation has stored.
select coalesce(sum(b.bytes), 0)::bigint as bytes from tape.blobs b where b.journal = :journal and b.begins = :begins;

-- name: chunk.append
-- fenced
-- writes: chunks
-- After `stream.fence` in the same transaction. A body of null says that the part started again.
insert into tape.chunks(run, stream, chunk_offset, part, token, at, body, total)
values (:run, :stream, :chunk_offset, :part, :token, tape.now_ms(), :body, :total);

-- name: chunk.find
-- read
select cast(c.token as text) as token from tape.chunks c where c.run = :run and c.stream = :stream and c.chunk_offset = :chunk_offset;

-- name: chunk.forget
-- unfenced: only streams of finished runs expire
-- writes: chunks
-- In ranges, so that the transaction stays short.
delete from tape.chunks where run = :run and stream = :stream
  and chunk_offset < :span + (select min(c.chunk_offset) from tape.chunks c where c.run = :run and c.stream = :stream);

-- name: chunk.last
-- read
select c.chunk_offset, c.total from tape.chunks c where c.run = :run and c.stream = :stream order by c.chunk_offset desc limit 1;

-- name: chunk.page
-- read
-- Chunks of several streams, each from its offset on. The end of the run is read by the same statement: no chunk follows it.
select w.k - 1 as k, r.journal, r.ended_at is not null as ended, c.chunk_offset, c.part, c.at, c.body,
  (select m.chunk_offset from tape.chunks m where m.run = s.run and m.stream = s.name order by m.chunk_offset desc limit 1) as last_offset
from json_array_elements(:wanted::json) with ordinality w(item, k)
cross join lateral (select r.journal, r.ended_at from tape.runs r where r.tenant = :tenant and r.id = w.item ->> 0 limit 1) r
left join lateral (select s.run, s.name from tape.streams s where s.run = r.journal and s.name = w.item ->> 1
  and (r.ended_at is null or s.retain_ms is null or r.ended_at + s.retain_ms > tape.now_ms()) limit 1) s on true
left join lateral (select c.chunk_offset, c.part, c.at, c.body from tape.chunks c
  where c.run = s.run and c.stream = s.name and c.chunk_offset >= (w.item ->> 2)::bigint
  order by c.chunk_offset limit :limit) c on true;

-- name: chunk.parts
-- read
-- Of the current generation: no body of an earlier one is attempted again.
select c.part, coalesce(sum(octet_length(c.body)), 0)::bigint as bytes from tape.chunks c
where c.run = (select r.journal from tape.runs r where r.tenant = :tenant and r.id = :id) and c.stream = :stream
  and c.part >= (select l.begins_pos from tape.leases l where l.journal = (select r.journal from tape.runs r where r.tenant = :tenant and r.id = :id))
group by c.part order by c.part limit :limit;

-- name: chunk.rewind
-- fenced
-- writes: chunks
-- After `stream.fence` in the same transaction: what earlier attempts of the part have streamed.
delete from tape.chunks where run = :run and stream = :stream and part = :part;

-- name: chunk.weigh
-- read
select coalesce(sum(octet_length(c.body)), 0)::bigint as bytes from tape.chunks c where c.run = :run and c.stream = :stream and c.part = :part;

-- name: erase.blobs
-- unfenced: only finished runs are erased
-- writes: blobs
-- In parts, so that no transaction lasts long.
delete from tape.blobs where journal = :run and (blob, n) in (select b.blob, b.n from tape.blobs b where b.journal = :run limit :limit)
returning case when counted then bytes else 0 end as bytes;

-- name: erase.chunks
-- unfenced: only finished runs are erased
-- writes: chunks
delete from tape.chunks where run = :run and (stream, chunk_offset) in (select c.stream, c.chunk_offset from tape.chunks c where c.run = :run limit :limit);

-- name: erase.streams
-- unfenced: only finished runs are erased
-- writes: streams
delete from tape.streams where run = :run;

-- name: stream.expired
-- read
-- The next streams with a retention of their own; `expired`: the run has ended, and the time is over.
select s.run, s.name, r.ended_at is not null and r.ended_at + s.retain_ms <= tape.now_ms() as expired
from tape.streams s cross join lateral (select r.ended_at from tape.runs r where r.journal = s.run limit 1) r
where s.retain_ms is not null and s.run > :above order by s.run, s.name limit :limit;

-- name: stream.fence
-- read
-- The fence of a write beside the journal of a run: it needs no head. Locks as `fence` does.
select l.kind, l.begins from tape.leases l
where l.journal = :journal and l.tenant is not distinct from :tenant and l.token = :token and l.nonce = :nonce and not l.doomed
  and tape.on_timeline()
for key share;

-- name: stream.forget
-- unfenced: only streams of finished runs expire
-- writes: streams
delete from tape.streams where run = :run and name = :name and not exists (select 1 from tape.chunks c where c.run = :run and c.stream = :name);

-- name: stream.list
-- read
select s.name, s.retain_ms, c.chunk_offset, c.total, c.at
from tape.runs r
cross join lateral (select s.run, s.name, s.retain_ms from tape.streams s where s.run = r.journal
  and (r.ended_at is null or s.retain_ms is null or r.ended_at + s.retain_ms > tape.now_ms())) s
cross join lateral (select c.chunk_offset, c.total, c.at from tape.chunks c where c.run = s.run and c.stream = s.name
  order by c.chunk_offset desc limit 1) c
where r.tenant = :tenant and r.id = :id
order by s.name;

-- name: stream.open
-- fenced
-- writes: streams
-- After `stream.fence` in the same transaction.
insert into tape.streams(run, name, retain_ms)
select :run::bigint, :name::text, :retain_ms::bigint where (select count(*) from tape.streams s where s.run = :run) < :max;

-- name: stream.subject
-- read
-- The run of a token whose signature is right.
select r.tenant, r.id, tape.now_ms() as now from tape.runs r where r.journal = :journal;

-- name: stream_many
-- fenced
-- writes: chunks, streams, witness
-- The batched route: chunks of many runs in one autocommitted statement, each run with its own fence, as in append_many.
-- `after` is the offset before the run's first chunk in the stream: its row has the bytes so far, and shows that no chunk
-- is missing. Chunks of a run pass together or not at all; one that opens too many streams, or makes one too large, has
-- no row, and its plan says why.
with l as materialized (
  select i.* from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :opens::bigint[])
    as i(journal, tenant, token, nonce, opens)
  cross join lateral (select 1 from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.tenant is not distinct from i.tenant
    and l.nonce = i.nonce and not l.doomed and l.kind = 'run' for key share skip locked) l
  where tape.on_timeline()
    and (i.opens = 0 or i.opens + (select count(*) from tape.streams s where s.run = i.journal) <= :max)),
c as materialized (
  select i.*, case when i.after < 0 then 0 else p.total end + i.size as total
  from unnest(:runs::bigint[], :writers::bigint[], :streams::text[], :retains::bigint[], :afters::bigint[], :offsets::bigint[],
      :parts::bigint[], :sizes::bigint[], string_to_array(:bodies, chr(31)))
    as i(run, token, stream, retain_ms, after, chunk_offset, part, size, body)
  left join lateral (select p.total from tape.chunks p where p.run = i.run and p.stream = i.stream and p.chunk_offset = i.after limit 1) p on true
  where (i.run in (select l.journal from l)) is true),
g as materialized (select c.run from c group by c.run having max(c.total) <= :max_bytes and count(*) = count(c.total)),
o as (insert into tape.streams(run, name, retain_ms)
  select c.run, c.stream, c.retain_ms from c where c.chunk_offset = 0 and (c.run in (select g.run from g)) is true),
w as (insert into tape.chunks(run, stream, chunk_offset, part, token, at, body, total)
  select c.run, c.stream, c.chunk_offset, c.part, c.token, (select tape.now_ms()), c.body, c.total
  from c where (c.run in (select g.run from g)) is true),
x as (insert into tape.witness(id, at) values (:id, tape.now_ms()))
select g.run as journal from g;

-- name: stream_many.check
-- read
-- After a lost response: which runs of the batch have their chunks, under their own token.
select distinct i.journal
from unnest(:runs::bigint[], :streams::text[], :writers::bigint[], :offsets::bigint[]) as i(journal, stream, token, chunk_offset)
cross join lateral (select 1 from tape.chunks c where c.run = i.journal and c.stream = i.stream
  and c.chunk_offset = i.chunk_offset and c.token = i.token limit 1) c;
