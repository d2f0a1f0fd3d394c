-- unfenced: the next start counts first, because more is counted now than before
update tape.quotas set runs_at = 0 where :tenant = '' or tenant = :tenant
