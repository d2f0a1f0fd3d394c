-- unfenced: the tenant's next entry; who writes one queues here until the entry before it is committed
insert into audit_heads(tenant, n, hash) values (:tenant, 1, '')
on conflict(tenant) do update set n = audit_heads.n + 1
returning n, hash, :at as at
