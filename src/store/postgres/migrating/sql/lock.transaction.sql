-- read
-- The same lock for as long as the transaction lasts: all that there is behind a pooler.
select pg_try_advisory_xact_lock(7216503, hashtext(:schema)) as mine
