-- read
select 1 as ok from tape.witness where id = :id
