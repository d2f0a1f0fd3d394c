-- unfenced: only finished runs are pruned; the id is never started again
insert into tape.tombstones(tenant, id, token, at) values (:tenant, :id, :token, tape.now_ms())
