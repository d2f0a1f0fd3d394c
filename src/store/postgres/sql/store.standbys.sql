-- read
-- How many standbys follow this server, and whether a commit waits for one of them.
select current_setting('synchronous_standby_names') as names, (select count(*) from pg_catalog.pg_stat_replication) as standbys
