-- read
select run, pos, tenant, name, status, binds, payload, value, opened_at, approvers from tape.gates where tenant = :tenant and status = 'OPEN' and (opened_at, run, pos) > (:after_at, :after_run, :after_pos)
order by opened_at, run, pos limit :limit
