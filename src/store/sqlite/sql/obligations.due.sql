-- fenced
update effects set status = 'PENDING', changed_at = :at
where root = (select r.root from runs r where r.journal = :run) and (run = :run or (:pos is null and root = :run))
  and role = 'inverse' and status = 'ARMED'
  and (:pos is null or (pos = :pos and sub = :sub))
