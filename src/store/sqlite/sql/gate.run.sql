-- read
select run, pos, tenant, name, status, binds, payload, value, opened_at, approvers
  from gates where run = :run and +tenant = :tenant and (not :open or status = 'OPEN')
order by opened_at, run, pos limit :limit
