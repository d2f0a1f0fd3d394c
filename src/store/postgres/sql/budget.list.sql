-- read
select * from tape.budgets where run = :run order by unit
