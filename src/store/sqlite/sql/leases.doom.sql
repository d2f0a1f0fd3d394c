-- unfenced: after a restore every term of before is over; its holder's writes are refused from this commit on
update leases set doomed = 1, expires_at = :now, last_end = 'superseded'
where journal in (select journal from leases where owner is not null and kind <> 'name' union all select n.journal from names n)
  and owner is not null
