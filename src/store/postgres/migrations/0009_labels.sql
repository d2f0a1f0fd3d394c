-- Labels of runs, for lists: `runs.labels` has the same ones for display. Each has a row, so that a list by labels walks
-- one of them and looks up the others.
create table tape.run_labels(
  tenant text collate "C" not null, key text collate "C" not null, value text collate "C" not null, journal bigint not null,
  primary key(tenant, key, value, journal)
);
create index run_labels_journal on tape.run_labels(journal);

-- Not null: the run's labels are in run_labels. A process of the previous version leaves it null.
alter table tape.runs add column labelled boolean;
