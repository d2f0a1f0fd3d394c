-- read
-- The store's own fence in the user's transaction. A write transaction excludes every takeover; one that has only read
-- so far cannot begin to write once somebody else has written (SQLITE_BUSY_SNAPSHOT).
select 1 as held from leases l
where l.journal = :journal and l.tenant = :tenant and l.token = :token and l.nonce = :nonce and l.doomed = 0
