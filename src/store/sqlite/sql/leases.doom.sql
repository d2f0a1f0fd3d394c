-- unfenced: after a restore every term of before is over; its holder's writes are refused from this commit on
update leases set doomed = 1, expires_at = :now, last_end = 'superseded' where owner is not null
