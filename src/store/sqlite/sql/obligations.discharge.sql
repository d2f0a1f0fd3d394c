-- fenced
-- Only when the root ended well: a completed child's obligations stay armed until then.
update effects set status = 'DISCHARGED', changed_at = :at where root = :run and role = 'inverse' and status = 'ARMED'
