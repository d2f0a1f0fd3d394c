-- read
-- Holders whose time has run out, of the given reactors.
select journal from tape.leases l where owner is not null and (expires_at <= tape.now_ms() or doomed) and kind <> 'name'
  and reactor = any(string_to_array(:stale_of, ',')) and (:tenant is null or tenant = :tenant)
  and (:workflows::text is null or (select r.workflow from tape.runs r where r.journal = l.journal)
    = any(array(select json_array_elements_text(:workflows::json))))
limit :limit
