-- unfenced: the machine was started anew and with it the lease clock: every term of before has expired
update leases set expires_at = :now, acquired_at = :now, renewed_at = :now, progress_at = :now, due_at = :now
where owner is not null or wants is not null
