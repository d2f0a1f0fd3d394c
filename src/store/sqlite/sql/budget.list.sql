-- read
select * from budgets where run = :run order by unit
