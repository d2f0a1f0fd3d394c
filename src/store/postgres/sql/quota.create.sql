-- unfenced: a row to count in, for a tenant that the default holds for
insert into tape.quotas(tenant) values (:tenant) on conflict do nothing
