-- read
-- How large the tables are, as the last VACUUM or ANALYZE saw it; a table that was never looked at says 0.
select c.relname as name, greatest(c.reltuples, 0)::float8 as rows, pg_catalog.pg_table_size(c.oid)::float8 as bytes
from pg_catalog.pg_class c where c.relnamespace = to_regnamespace(:schema) and c.relkind = 'r'
