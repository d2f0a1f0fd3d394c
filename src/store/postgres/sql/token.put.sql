-- unfenced: unique by its id, which its maker drew by lot
insert into tape.tokens(id, tenant, name, role, hash, created_at, expires_at)
select :id, :tenant, :name, :role, :hash, t.at, t.at + :in_ms from (select tape.now_ms() as at) t
on conflict do nothing returning id, tenant, name, role, hash, created_at, expires_at, revoked_at, used_at
