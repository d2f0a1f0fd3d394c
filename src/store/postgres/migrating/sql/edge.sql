-- read
-- The last key of the next batch. `batched_table` and `batched_key` stand for those of the migration.
select max(k.key)::text as edge from (
  select b.batched_key as key from batched_table b where b.batched_key > :after::bigint order by b.batched_key limit :size::bigint
) k
