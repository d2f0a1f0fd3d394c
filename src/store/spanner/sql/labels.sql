-- macro: $has_labels
-- Whether the run `r` has these labels: pairs of a key and its possible values.
(:labels is null or not exists (select 1 from unnest(json_query_array(:labels)) g where not exists (
    select 1 from run_labels@{force_index=run_labels_journal} x where x.journal = r.journal and x.key = json_value(g, '$[0]')
      and x.value in unnest(json_value_array(g, '$[1]')))));

-- name: label.counts
-- read
-- How many runs have each of these values of labels, counted up to :limit.
select json_value(g, '$[0]') as key, json_value(g, '$[1]') as value, (select count(*) from (select x.journal from run_labels x
    where x.tenant = :tenant and x.key = json_value(g, '$[0]') and x.value = json_value(g, '$[1]') limit :limit)) as runs
from unnest(json_query_array(:pairs)) g;

-- name: labels.create
-- unfenced: part of the transaction that creates the run
-- writes: run_labels
-- GoogleSQL cannot list the keys of an object: the executor passes the labels of the run as pairs.
insert into run_labels(tenant, key, value, journal)
select r.tenant, json_value(j, '$[0]'), json_value(j, '$[1]'), r.journal from runs r cross join unnest(json_query_array(:pairs)) j where r.journal = :journal;

-- name: labels.drop
-- fenced
-- writes: run_labels
delete from run_labels where journal = :run and key in unnest(json_value_array(:keys));

-- name: labels.find
-- read
select r.labels, true as listed from runs r where r.journal = :run and r.tenant = :tenant;

-- name: labels.put
-- fenced
-- writes: run_labels
insert or ignore into run_labels(tenant, key, value, journal)
select :tenant, json_value(j, '$[0]'), json_value(j, '$[1]'), :run from unnest(json_query_array(:pairs)) j;

-- name: labels.unlisted
-- read
-- None: labels are listed with their run since the first version of this store.
select r.journal from runs r where false limit :limit;

-- name: labels.set
-- fenced
-- writes: runs
update runs set labels = :labels where journal = :run;

-- name: run.by_label
-- read
-- Runs with one value of a label, newest first, shard by shard. Their other labels are looked up, each by its key: a run
-- without them is not read.
select $run_columns from $shards s
cross join unnest(array(select x.journal from run_labels@{force_index=run_labels_newest} x
  join runs r on r.journal = x.journal join leases l on l.journal = x.journal
  where x.tenant = :tenant and x.key = :key and x.value = :value and x.shard = s and x.born < :before
    and (:others is null or not exists (select 1 from unnest(json_query_array(:others)) g where not exists (
      select 1 from run_labels@{force_index=run_labels_journal} o where o.journal = x.journal and o.key = json_value(g, '$[0]')
        and o.value in unnest(json_value_array(g, '$[1]')))))
    and r.tenant = :tenant and (:workflow is null or r.workflow = :workflow)
    and (:lower is null or (r.id >= :lower and r.id < :upper))
    and $has_status and $started_within and $ended_within and $is_in_doubt
  order by x.born desc limit :limit)) j
join runs r on r.journal = j join leases l on l.journal = j
order by r.born desc limit :limit;

-- name: run.unlisted
-- read
-- None: see labels.unlisted.
select $run_columns from runs r join leases l on l.journal = r.journal where false limit :limit;
