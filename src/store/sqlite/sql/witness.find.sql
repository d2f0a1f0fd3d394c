-- read
select 1 as ok from witness where id = :id
