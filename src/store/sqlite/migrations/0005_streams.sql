-- Streams of runs. `retain_ms`: how long after the run's end its chunks are kept; null: as long as the run.
create table streams(
  run integer not null, name text not null, retain_ms integer, primary key(run, name)
) strict, without rowid;
create index streams_retained on streams(run, name) where retain_ms is not null;

-- What bodies have streamed. Offsets of a stream only grow; `part` is the position of the operation. A row without a body
-- says that the part started again, and that its earlier chunks are gone. `total`: bytes of the stream up to this chunk.
create table chunks(
  run integer not null, stream text not null, chunk_offset integer not null, part integer not null,
  token integer not null, at integer not null, body text, total integer not null,
  primary key(run, stream, chunk_offset)
) strict, without rowid;
