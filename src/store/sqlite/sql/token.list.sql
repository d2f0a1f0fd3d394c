-- read
-- Oldest first; a page continues behind the token :above, which is one of the same list: behind another there is nothing.
select id, tenant, name, role, hash, created_at, expires_at, revoked_at, used_at
  from tokens where (:tenant is null or tenant = :tenant)
  and (:above = '' or (created_at, id) > (select t.created_at, t.id from tokens t where t.id = :above
    and (:tenant is null or t.tenant = :tenant)))
order by created_at, id limit :limit
