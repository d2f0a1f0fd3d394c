-- read
-- Tried, never waited for: who waits inside a statement holds a snapshot, and an index that is built concurrently waits for
-- every snapshot of before. 7216503 is any number, the same for every Tape.
select pg_try_advisory_lock(7216503, hashtext(:schema)) as mine
