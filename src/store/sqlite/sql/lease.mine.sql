-- read
-- What a find with this nonce has acquired: its answer may have been lost. It is in the same queues as the find looked at.
select l.journal from json_each(:workflows) w cross join leases l indexed by leases_held
where l.owner is not null and l.kind <> 'name' and l.tenant = :tenant and l.workflow = w.value
  and l.owner = :owner and l.nonce = :nonce
