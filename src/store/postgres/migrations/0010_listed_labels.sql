-- online
-- Labels of runs that exist already. Longer ones than are accepted now might not fit into an index.
-- in batches of tape.runs(journal)
with u as (update tape.runs r set labelled = true
  where r.journal > :after and r.journal <= :until and r.labels is not null and r.labelled is null
  returning r.tenant, r.journal, r.labels)
insert into tape.run_labels(tenant, key, value, journal)
select u.tenant, j.key, j.value, u.journal from u cross join lateral json_each_text(u.labels::json) j
where length(j.key) <= 128 and length(j.value) <= 128
on conflict do nothing;
-- What processes of the previous version still write.
create index concurrently runs_unlisted on tape.runs(tenant, journal) where labels is not null and labelled is null;
