-- read
select run, unit, cap, reserved, spent from tape.budgets where run = :run order by unit
