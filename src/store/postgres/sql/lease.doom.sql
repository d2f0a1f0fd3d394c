-- unfenced: announces a takeover that could not get its lock at once. Not a key column, so it does not wait for open
-- guarded transactions; from this commit on no new one can begin, and the takeover cannot starve behind them.
update tape.leases set doomed = true
where journal = :journal and token = :token and owner is not null and (:force or expires_at <= tape.now_ms())
