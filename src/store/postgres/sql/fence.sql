-- read
-- THE FENCE (see src/model/fence.ts). FOR KEY SHARE together with the unique index leases_fence(journal, token) makes
-- the token a key column: a takeover changes it and so waits for us, while heartbeats (non-key) pass. A writer that had
-- to wait for a takeover re-evaluates to no row. Unlocked, or without that index, a stale write commits after a
-- takeover; FOR SHARE would block our own heartbeat. The head is checked by record.append, with a newer snapshot.
-- No row while the server's timeline is not the recorded one: a promoted standby may have lost what a holder has seen,
-- and nothing of a term of before may be written on top of that.
-- IS NOT DISTINCT FROM keeps the look-up on the journal's own key, whatever other index begins with the tenant.
select l.kind, l.tenant, l.run, l.notes from tape.leases l
where l.journal = :journal and l.tenant is not distinct from :tenant and l.token = :token and l.nonce = :nonce and not l.doomed
  and (select tape.on_timeline(m.timeline) from tape.meta m)
for key share
