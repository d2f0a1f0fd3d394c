-- unfenced: the first who revokes it is who did
update tokens set revoked_at = :at where id = :id and (:tenant is null or tenant = :tenant) and revoked_at is null
returning id, tenant, name, role, hash, created_at, expires_at, revoked_at, used_at
