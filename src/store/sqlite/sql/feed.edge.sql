-- read
select max(id) as id from records
