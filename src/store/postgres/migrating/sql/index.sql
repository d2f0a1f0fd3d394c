-- read
-- An index that was being built when its builder was killed is there and is not valid.
select x.indisvalid as valid from pg_catalog.pg_index x where x.indexrelid = to_regclass(:index)
