-- read
-- What a find with this nonce has acquired: its answer may have been lost. It is in the same queues as the find looked at.
select l.journal from (select distinct json_array_elements_text(:workflows::json) as workflow) w
cross join lateral (select x.journal from tape.leases x where x.owner is not null and x.kind <> 'name' and x.tenant = :tenant
  and x.workflow = w.workflow and x.owner = :owner and x.nonce = :nonce) l
