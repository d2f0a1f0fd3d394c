-- read
select run, unit, cap, reserved, spent from budgets where run = :run order by unit
