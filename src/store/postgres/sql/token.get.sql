-- read
select id, tenant, name, role, hash, created_at, expires_at, revoked_at, used_at from tape.tokens where id = :id
