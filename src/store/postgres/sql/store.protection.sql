-- read
-- What the fence rests on: without one of these indexes as we made it, a stale write commits after a takeover, a journal
-- forks, an id is given twice; a table that is not logged is empty after a crash. A deferrable or half-built index protects
-- as little as none. And what this role may not do with the tables: it would come up in the middle of the work.
select
  array_to_string(array(
    select w.index from (values
      ('leases_fence', 'tape.leases', '{journal,token}'), ('leases_pkey', 'tape.leases', '{journal}'),
      ('records_head', 'tape.records', '{journal,seq}'), ('runs_id', 'tape.runs', '{tenant,id}'),
      ('runs_pkey', 'tape.runs', '{journal}'), ('claims_pkey', 'tape.claims', '{tenant,scope,business_key}'),
      ('effects_pkey', 'tape.effects', '{run,pos,sub}')
    ) w(index, of, keys)
    where not exists (
      select 1 from pg_catalog.pg_index x join pg_catalog.pg_class c on c.oid = x.indexrelid
      where x.indrelid = to_regclass(w.of) and c.relname = w.index and x.indisunique and x.indisvalid and x.indisready
        and x.indislive and x.indimmediate and x.indpred is null and x.indexprs is null
        and array(select a.attname::text from unnest(x.indkey[0:x.indnkeyatts - 1]) with ordinality k(n, at)
          join pg_catalog.pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.n order by k.at) = w.keys::text[])
  ), ', ') as unprotected,
  array_to_string(array(
    select c.relname || case c.relpersistence when 'u' then ' (unlogged)' else ' (temporary)' end from pg_catalog.pg_class c
    where c.relnamespace = to_regnamespace(:schema) and c.relkind = 'r' and c.relpersistence <> 'p' order by c.relname
  ), ', ') as volatile,
  array_to_string(array(
    select c.relname::text from pg_catalog.pg_class c
    where c.relnamespace = to_regnamespace(:schema) and c.relkind = 'r' and c.relname <> 'migrations'
      and not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
        and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete')) order by c.relname
  ), ', ') as forbidden,
  array_to_string(array(
    select p.proname::text from pg_catalog.pg_proc p
    where p.pronamespace = to_regnamespace(:schema) and not has_function_privilege(p.oid, 'execute') order by p.proname
  ), ', ') as uncallable,
  current_user::text as role
