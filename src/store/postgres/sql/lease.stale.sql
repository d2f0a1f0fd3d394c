-- read
-- Holders whose time has run out, of the given reactors.
select journal from tape.leases where owner is not null and (expires_at <= tape.now_ms() or doomed) and kind <> 'name'
  and reactor = any(string_to_array(:stale_of, ',')) and (:tenant is null or tenant = :tenant)
limit :limit
