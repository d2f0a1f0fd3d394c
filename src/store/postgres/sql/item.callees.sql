-- read
-- Whom work on these items calls: the effect's connector, or where it has none the effect.
select e.journal, e.callee from json_array_elements_text(:journals::json) i(journal)
cross join lateral (select x.item as journal, coalesce(x.connector, x.name, '') as callee from tape.effects x
  where x.item = i.journal::bigint limit 1) e
