-- unfenced: only finished runs are pruned; the id is never started again
insert into tombstones(tenant, id, token, at) values (:tenant, :id, :token, :at)
