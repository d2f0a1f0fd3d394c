-- unfenced: what began before its tenant had a limit is counted from now on
update tape.runs set counted = true
where journal > :after and journal <= :until and ended_at is null and not counted
  and exists (select 1 from tape.quotas q where q.tenant in (runs.tenant, '') and (q.runs is not null or q.bytes is not null))
