-- read
-- Oldest first; a page goes on behind the token :above.
select * from tape.tokens where (:tenant is null or tenant = :tenant)
  and (:above = '' or (created_at, id) > (select t.created_at, t.id from tape.tokens t where t.id = :above))
order by created_at, id limit :limit
