-- unfenced: after a restore every term of before is over; its holder's writes are refused from this commit on
update tape.leases set doomed = true, expires_at = tape.now_ms(), last_end = 'superseded'
where owner is not null and (kind <> 'name' or journal in (select n.journal from tape.names n))
