-- unfenced: announces a takeover; needed only where a takeover could starve behind open guarded transactions
update leases set doomed = 1
where journal = :journal and token = :token and owner is not null and (:force or expires_at <= :now)
