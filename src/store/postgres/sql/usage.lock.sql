-- unfenced: one at a time; who finds another at it leaves it to that one, and so never waits while it holds a row
select metered from tape.quotas where tenant = '' and metered is not null for update skip locked
