-- read
select pos, binds, approvers from gates where run = :run and name = :name and status = 'OPEN' order by pos
