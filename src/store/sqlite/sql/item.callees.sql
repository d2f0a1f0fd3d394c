-- read
-- Whom work on these items calls: the effect's connector, or where it has none the effect.
select e.item as journal, coalesce(e.connector, e.name, '') as callee from json_each(:journals) i
cross join effects e on e.item = i.value
