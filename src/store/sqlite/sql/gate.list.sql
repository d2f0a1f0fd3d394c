-- read
select run, pos, tenant, name, status, binds, payload, value, opened_at, approvers
  from gates where tenant = :tenant order by opened_at, run, pos limit :limit
