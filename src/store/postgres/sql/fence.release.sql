-- read
-- The fence of a write that ends its term. It changes the token itself, so it takes the stronger lock at once: two
-- holders of a key share that both want more would wait for each other.
select l.kind, l.tenant, l.run, l.notes from tape.leases l
where l.journal = :journal and l.tenant is not distinct from :tenant and l.token = :token and l.nonce = :nonce and not l.doomed
  and (select tape.on_timeline(m.timeline) from tape.meta m)
for update
