-- fenced
update effects set status = 'WITHDRAWN', changed_at = :at where run = :run and role = 'act' and status = 'PENDING'
