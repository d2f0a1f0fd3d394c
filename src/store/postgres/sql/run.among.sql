-- read
-- How far these runs have come, for those who wait for many of them: one look for all, by the index of ids.
select r.journal, r.id, r.workflow, r.phase, r.outcome, r.ended_at, l.owner as lease_owner, l.wants as lease_wants
from json_array_elements_text(:ids::json) i(id)
join tape.runs r on r.tenant = :tenant and r.id = i.id cross join lateral (select l.notes, l.owner, l.wants from tape.leases l where l.journal = r.journal limit 1) l
