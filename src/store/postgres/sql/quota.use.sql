-- unfenced: under the row's lock; what is counted is written in the same transaction
update tape.quotas set runs_used = :used, runs_at = case when :fresh then tape.now_ms() else runs_at end where tenant = :tenant
