-- unfenced: a lease comes to be when it is first asked for
insert into names(tenant, name, journal) values (:tenant, :name, :journal) on conflict do nothing
