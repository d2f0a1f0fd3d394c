-- unfenced: the machine was started anew and with it the lease clock: every term of before has expired
update leases set expires_at = :now, acquired_at = :now, renewed_at = :now, progress_at = :now, due_at = :now
where journal in (select journal from leases where wants is not null
  union all select journal from leases where owner is not null and kind <> 'name'
  union all select n.journal from names n) and (owner is not null or wants is not null)
