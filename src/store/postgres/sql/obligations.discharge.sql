-- fenced
-- Only when the root ended well: a completed child's obligations stay armed until then.
update tape.effects set status = 'DISCHARGED', changed_at = tape.now_ms() where root = :run and role = 'inverse' and status = 'ARMED'
