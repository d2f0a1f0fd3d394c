-- read
-- run.place, of a run that has been deleted.
select id, created_at, ended_at from tape.tombstones where journal = :journal and tenant = :tenant
