-- unfenced: only finished runs are pruned; the id is never started again
-- With the run's place in lists: whoever reads them page by page goes on behind it.
insert into tape.tombstones(tenant, id, token, at, journal, created_at, ended_at)
values (:tenant, :id, :token, tape.now_ms(), :journal, :created_at, :ended_at)
