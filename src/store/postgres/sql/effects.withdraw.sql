-- fenced
-- The || as in run.settled.
update tape.effects set status = 'WITHDRAWN', changed_at = tape.now_ms() where run = :run and role = 'act' and status || '' = 'PENDING'
