-- unfenced: under the same lock
update quotas set metered = :edge, metered_at = case when :fresh then :at else metered_at end where tenant = ''
