-- The stamp of one record, also if it was committed a moment ago: a volatile function reads with a snapshot of its own. A statement that
-- waited for an inbox's lock does not see the note that the lock's last holder has written.
create function tape.stamp_of(journal bigint, seq bigint) returns bigint language sql volatile as $$
  select r.stamp from tape.records r where r.journal = $1 and r.seq = $2
$$;
