-- Streams of runs. `retain_ms`: how long after the run's end its chunks are kept; null: as long as the run.
create table tape.streams(
  run bigint not null, name text collate "C" not null, retain_ms bigint, primary key(run, name)
);
create index streams_retained on tape.streams(run, name) where retain_ms is not null;

-- What bodies have streamed. Offsets of a stream only grow; `part` is the position of the operation. A row without a body
-- says that the part started again, and that its earlier chunks are gone. `total`: bytes of the stream up to this chunk.
-- Rows are never updated, and go with their run in ranges: vacuum starts early, so that the space is used again soon.
create table tape.chunks(
  run bigint not null, stream text collate "C" not null, chunk_offset bigint not null, part bigint not null,
  token bigint not null, at bigint not null, body text, total bigint not null,
  primary key(run, stream, chunk_offset)
) with (autovacuum_vacuum_scale_factor = 0.05);
