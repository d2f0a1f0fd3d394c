-- read
select metered from quotas where tenant = '' and metered is not null
