-- unfenced: under the lock of what is measured
insert into quotas(tenant, bytes_used) values (:tenant, :bytes)
on conflict(tenant) do update set bytes_used = quotas.bytes_used + excluded.bytes_used
