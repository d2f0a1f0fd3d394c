-- unfenced: from the first record on
update quotas set metered = 0 where tenant = '' and metered is null
