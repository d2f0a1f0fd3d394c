-- read
select id, tenant, name, role, hash, created_at, expires_at, revoked_at, used_at from tokens where id = :id
