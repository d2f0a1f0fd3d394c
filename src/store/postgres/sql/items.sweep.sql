-- fenced
-- An array, so that the leases are looked up and not joined with all there are.
update tape.leases set wants = null where owner is null and kind || '' = 'item' and journal = any(array(
  select e.item from tape.effects e where e.run = :run and e.item is not null and e.status = 'WITHDRAWN'))
