-- unfenced: under the same lock
update tape.quotas set metered = :edge, metered_at = case when :fresh then tape.now_ms() else metered_at end where tenant = ''
