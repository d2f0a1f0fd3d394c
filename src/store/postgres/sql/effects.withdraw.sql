-- fenced
update tape.effects set status = 'WITHDRAWN', changed_at = tape.now_ms() where run = :run and role = 'act' and status = 'PENDING'
