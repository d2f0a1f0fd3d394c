-- Labels of runs, for lists: `runs.labels` has the same ones for display. Each has a row, so that a list by labels walks
-- one of them and looks up the others.
create table run_labels(
  tenant text not null, key text not null, value text not null, journal integer not null,
  primary key(tenant, key, value, journal)
) strict, without rowid;
create index run_labels_journal on run_labels(journal);

-- Not null: the run's labels are in run_labels. A process of the previous version leaves it null.
alter table runs add column labelled integer;
insert into run_labels(tenant, key, value, journal)
select r.tenant, j.key, j.value, r.journal from runs r cross join json_each(r.labels) j
where length(j.key) <= 128 and length(j.value) <= 128 order by 1, 2, 3, 4;
update runs set labelled = 1 where labels is not null;
create index runs_unlisted on runs(tenant, journal) where labels is not null and labelled is null;
