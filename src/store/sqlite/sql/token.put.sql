-- unfenced: unique by its id, which its maker drew by lot
insert into tokens(id, tenant, name, role, hash, created_at, expires_at)
values (:id, :tenant, :name, :role, :hash, :at, :at + :in_ms) on conflict do nothing returning id, tenant, name, role, hash, created_at, expires_at, revoked_at, used_at
