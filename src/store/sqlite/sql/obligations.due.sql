-- fenced
update effects set status = 'PENDING', changed_at = :at
where status = 'ARMED' and (run = :run or (:pos is null and root = :run)) and role = 'inverse'
  and (:pos is null or (pos = :pos and sub = :sub))
