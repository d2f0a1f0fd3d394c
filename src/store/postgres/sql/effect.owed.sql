-- read
-- Obligations of a root and of everything below it, in the order in which those of one run are undone. With :below only
-- those that this run answers for: its own and those of everything below it, without what was done once too often. The +
-- keeps the planner from the order of all effects.
select e.run, e.pos, e.sub, e.tenant, e.root, e.role, e.name, e.connector, e.semantics, e.dispatch, e.status, e.authority,
  e.item, e.key, e.business_key, e.args_hash, e.args, e.policy, e.attempt, e.send_until, e.reason, e.outcome, e.surplus,
  e.created_at, e.changed_at,
  cast(e.attempt_token as text) as attempt_token, cast(e.attempt_nonce as text) as attempt_nonce from tape.effects e
where e.root = :root and e.role = 'inverse' and e.run + 0 >= :from and e.tenant is not distinct from :tenant
  and (:below is null or (not e.surplus and (e.run = :below or e.root = :below or e.run in (
    with recursive tree(journal) as (
      select r.journal from tape.runs r where r.journal = :below
      union all select c.journal from tape.runs c join tree on c.parent = tree.journal)
    select journal from tree))))
  and (:status is null or e.status = any(string_to_array(:status, ',')))
  and (:min_age_ms is null or e.changed_at <= tape.now_ms() - :min_age_ms)
order by e.run + 0, e.pos desc, e.sub desc limit :limit
